#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "proc/family/audience.hpp"
#include "proc/family/descendants.hpp"
#include "proc/family/exits.hpp"

namespace taas {

/// Everything that the launcher started and what those processes started: ranks, their workers, and orphans in sessions
/// of their own. One instance a process. It makes the process a subreaper, reaps orphans as they end, and never touches
/// a process that is not a descendant.
class Family {
 public:
  explicit Family(boost::asio::io_context& io);
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// Owns the child until its end (see ExitWatch). A child not given here is reaped as an orphan and its status lost.
  void watch(Child child, ExitCallback on_exit);
  /// Signals the process group led by a watched child; nothing when it has ended.
  void signal_group(int pid, int signal);
  /// Tells the process groups led by these watched children, each program in them once (see choose_recipients()).
  /// Returns the leaders in whose groups nobody handles the signal. `before` is called once it is known who will be
  /// told.
  std::vector<int> tell(const std::vector<int>& leaders, int signal, Audience audience,
                        const std::function<void()>& before = nullptr);
  /// Somebody else has told all descendants to end.
  void all_are_told();

  /// This child and what is below it belong to somebody else: not signalled, not reaped, not waited for.
  void spare(int pid);
  void unspare(int pid);

  /// Ends every descendant, those that it finds later too, and calls back once none is left and all watched ones have
  /// been told. SIGKILL is for all; another signal is told to each program once, and not to those that tell() has told
  /// to end already; 0 only waits. A second sweep takes the place of the first. With a signal that can be ignored this
  /// may take for ever.
  void sweep(int signal, std::function<void()> on_gone);

  /// All descendants at this moment but spared ones: what survives a sweep can be named.
  [[nodiscard]] std::vector<Process> members() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
