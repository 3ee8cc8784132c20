#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proc/family/descendants.hpp"

namespace taas {

/// What a signal means to a process, as /proc has it.
struct Disposition {
  enum class Response {
    kDefault,  ///< it ends, of most signals
    kIgnores,
    kHandles,  ///< it has a handler, or waits for the signal with sigwait() or signalfd()
  };
  Response response = Response::kDefault;
  std::string program;   ///< path of the executable; empty: it may not be read
  bool stopped = false;  ///< by SIGSTOP or the like: it heeds nothing until SIGCONT

  /// It handles the signal for the processes below it too; a shell does not.
  [[nodiscard]] bool acts_for_those_below() const;
};

/// Nothing when the process has ended.
std::optional<Disposition> read_disposition(int pid, int signal);

/// Whom a signal is meant for.
enum class Audience {
  kAll,       ///< it asks to end: who does not handle it ends of it
  kHandlers,  ///< it asks for something else: who would end of it does not get it
  kNobody,    ///< all have got it from somebody else: only who handles it is of interest
};

/// Who of `members`, a piece of the process tree, gets a signal, so that each program hears of it once and can do what
/// it does then with its own workers still there. From the top downwards:
/// - who handles it gets it, and what is below belongs to that process: a worker of a DataLoader that ended now would
///   be an error in the process that is about to save;
/// - who does not handle it gets it, if it is for all, and so do those below, by the same rule;
/// - a shell gets it as well, but hands nothing on to what it runs (its trap waits for the command's end): so those
///   below are asked too, whether it has a trap or not;
/// - below one that ignores it, as time(1) does while it waits, other programs than its own are asked.
std::vector<Process> choose_recipients(const std::vector<Process>& members, Audience audience,
                                       const std::function<Disposition(const Process&)>& look);

/// Signals these processes as signal_processes() does; one that is stopped is continued, or it would not notice.
void tell_processes(const std::vector<Process>& processes, int signal);

/// One signal to several process groups. Leaders are told before anybody else is looked for: most have no processes of
/// their own, and those that they have may follow a moment later.
class GroupCall {
 public:
  GroupCall(int signal, Audience audience) : signal_(signal), audience_(audience) {}

  /// What these do about the signal is found out now: a process that is stopped meanwhile does not show that it waits
  /// for a signal.
  void see(const std::vector<Process>& processes);
  /// The leader must not have been reaped.
  void tell_leader(int pid);
  /// The rest of the groups whose leaders have been told.
  void tell_groups();

  [[nodiscard]] const std::set<Process>& told() const { return told_; }
  /// Leaders in whose groups nobody handles the signal.
  [[nodiscard]] std::vector<int> unheard() const;

 private:
  void tell(int leader, const std::vector<Process>& members);
  Disposition look(const Process& process);

  int signal_;
  Audience audience_;
  bool were_seen_ = false;
  std::set<Process> leaders_;
  std::set<int> heard_;  // leaders of groups in which somebody handles it
  std::set<Process> told_;
  std::map<Process, Disposition> seen_;
};

}  // namespace taas
