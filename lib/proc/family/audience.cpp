#include "proc/family/audience.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

using Response = Disposition::Response;

/// The value of a line of /proc/PID/status, without blanks.
std::string_view field(std::string_view status, std::string_view name) {
  for (auto line : split(status, '\n')) {
    if (line.starts_with(name)) return trim(line.substr(name.size()), " \t");
  }
  return {};
}

bool has_signal(std::string_view mask, int signal) {
  std::uint64_t bits = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return (bits >> (signal - 1) & 1) != 0;
}

/// A blocked signal is one that the process fetches: tini and many C++ programs do.
Response response_to(int signal, std::string_view status) {
  if (has_signal(field(status, "SigCgt:"), signal) || has_signal(field(status, "SigBlk:"), signal)) {
    return Response::kHandles;
  }
  return has_signal(field(status, "SigIgn:"), signal) ? Response::kIgnores : Response::kDefault;
}

/// While a thread waits in sigwait() the kernel does not show what it has blocked for that.
bool waits_for_signals(int pid) {
  auto where = read_file("/proc/" + std::to_string(pid) + "/wchan");
  return where && where->find("sigtimedwait") != std::string::npos;
}

std::string program_of(int pid) {
  std::array<char, PATH_MAX> path;
  auto length = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

bool is_shell(std::string_view program) {
  constexpr std::string_view kShells[] = {"sh",    "bash", "dash", "ash", "zsh",  "ksh",
                                          "ksh93", "mksh", "fish", "csh", "tcsh", "busybox"};
  auto name = program.substr(program.rfind('/') + 1);
  return std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells);
}

/// Whoever would end of the signal gets one that asks to end.
bool gets(const Disposition& seen, Audience audience) {
  return seen.response == Response::kHandles || (seen.response == Response::kDefault && audience == Audience::kAll);
}

/// One walk through the tree.
class Choice {
 public:
  using Reader = std::function<Disposition(const Process&)>;
  Choice(const std::vector<Process>& members, Audience audience, const Reader& look)
      : audience_(audience), look_(look) {
    std::set<int> known;
    for (const auto& member : members) known.insert(member.pid);
    for (const auto& member : members) {
      if (known.contains(member.parent)) below_.emplace(member.parent, member);
    }
    for (const auto& member : members) {
      if (!known.contains(member.parent)) ask(member, "");
    }
  }

  std::vector<Process> take() { return std::move(chosen_); }

 private:
  /// One whose program is `own` is a worker of the process above, which ignores the signal.
  void ask(const Process& process, const std::string& own) {
    const auto seen = look_(process);
    if (!own.empty() && seen.program == own) return;
    if (gets(seen, audience_)) chosen_.push_back(process);
    if (seen.acts_for_those_below()) return;
    const bool has_workers = seen.response == Response::kIgnores && !is_shell(seen.program);
    auto [first, last] = below_.equal_range(process.pid);
    for (; first != last; ++first) ask(first->second, has_workers ? seen.program : "");
  }

  Audience audience_;
  const Reader& look_;
  std::multimap<int, Process> below_;
  std::vector<Process> chosen_;
};

}  // namespace

std::optional<Disposition> read_disposition(int pid, int signal) {
  auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!status) return std::nullopt;
  auto response = response_to(signal, *status);
  if (response == Response::kDefault && waits_for_signals(pid)) response = Response::kHandles;
  return Disposition{response, program_of(pid), field(*status, "State:").starts_with('T')};
}

bool Disposition::acts_for_those_below() const { return response == Response::kHandles && !is_shell(program); }

std::vector<Process> choose_recipients(const std::vector<Process>& members, Audience audience,
                                       const std::function<Disposition(const Process&)>& look) {
  return Choice(members, audience, look).take();
}

/// One that was told to stop a moment ago may not have stopped yet, and would then with the signal pending: so SIGCONT
/// goes to all, which takes that back.
void tell_processes(const std::vector<Process>& processes, int signal) {
  signal_processes(processes, {signal, SIGCONT});
}

void GroupCall::see(const std::vector<Process>& processes) {
  for (const auto& process : processes) look(process);
  were_seen_ = true;
}

/// Its number is its own until it is reaped, so that it is told before anything else is looked up.
void GroupCall::tell_leader(int pid) {
  const auto seen = were_seen_ ? std::nullopt : read_disposition(pid, signal_);
  const bool gets_it = seen && gets(*seen, audience_);
  if (audience_ != Audience::kNobody) {
    if (gets_it) ::kill(pid, signal_);
    if (gets_it || (seen && audience_ == Audience::kAll)) ::kill(pid, SIGCONT);
  }
  auto leader = read_process(pid);
  if (!leader) return;
  leaders_.insert(*leader);
  if (!seen) return tell(pid, {*leader});
  seen_.emplace(*leader, *seen);
  if (gets_it) told_.insert(*leader);
  if (gets_it && seen->response == Response::kHandles) heard_.insert(pid);
}

/// A leader that has ended of the signal is still its group's number, and what it started is nobody's below it.
void GroupCall::tell_groups() {
  std::map<int, std::vector<Process>> groups;
  for (const auto& leader : leaders_) {
    if (!look(leader).acts_for_those_below()) groups[leader.pid] = {leader};
  }
  if (groups.empty()) return;
  for (const auto& process : descendants()) {
    auto group = groups.find(process.group);
    if (group != groups.end() && process.pid != process.group) group->second.push_back(process);
  }
  for (const auto& [leader, members] : groups) tell(leader, members);
}

void GroupCall::tell(int leader, const std::vector<Process>& members) {
  std::vector<Process> fresh;
  for (const auto& process : choose_recipients(members, audience_, [this](const auto& one) { return look(one); })) {
    if (look(process).response == Response::kHandles) heard_.insert(leader);
    if (told_.insert(process).second) fresh.push_back(process);
  }
  if (audience_ == Audience::kNobody) return;
  tell_processes(fresh, signal_);
  if (audience_ != Audience::kAll) return;
  // Whoever ignores the signal learns of the stop in another way, for which it has to run.
  std::vector<Process> others;
  std::copy_if(members.begin(), members.end(), std::back_inserter(others),
               [this](const auto& member) { return !told_.contains(member); });
  signal_processes(others, {SIGCONT});
}

/// What was seen first counts: the signal changes it.
Disposition GroupCall::look(const Process& process) {
  auto known = seen_.find(process);
  if (known != seen_.end()) return known->second;
  return seen_.emplace(process, read_disposition(process.pid, signal_).value_or(Disposition{})).first->second;
}

std::vector<int> GroupCall::unheard() const {
  std::vector<int> result;
  for (const auto& leader : leaders_) {
    if (!heard_.contains(leader.pid)) result.push_back(leader.pid);
  }
  return result;
}

}  // namespace taas
