#include "node/timers/node_timers.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "proc/family/descendants.hpp"
#include "run/events/words.hpp"

namespace taas::node {
namespace {

constexpr const char* kEnable = "TORCHELASTIC_ENABLE_FILE_TIMER";
constexpr const char* kFile = "TORCHELASTIC_TIMER_FILE";
constexpr std::size_t kLongestScope = 100;  // of which is told

/// A process for which a timer was set, and the rank that it is or descends from.
struct TimedProcess {
  Process process;
  Rank rank;
};

/// Of a rank's process or a descendant of it, and of no other.
std::optional<TimedProcess> find_timed(int pid, const std::function<std::optional<Rank>(int)>& find_rank) {
  std::map<int, Process> below;
  for (const auto& process : descendants()) below.emplace(process.pid, process);
  auto wanted = below.find(pid);
  if (wanted == below.end()) return std::nullopt;
  for (auto at = wanted; at != below.end(); at = below.find(at->second.parent)) {
    if (auto rank = find_rank(at->first)) return TimedProcess{wanted->second, *rank};
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<NodeTimers>> NodeTimers::open(boost::asio::io_context& io, const Environment& environment,
                                                     Callbacks callbacks) {
  if (value_of(environment, kEnable) != "1") return std::unique_ptr<NodeTimers>();
  auto timers = std::unique_ptr<NodeTimers>(new NodeTimers(std::move(callbacks)));
  auto path = value_of(environment, kFile);
  if (path.empty() || TimerFile::in_use(path)) {
    auto folder = PrivateFolder::make(environment);
    if (!folder) return std::move(folder).error().with(kEnable);
    timers->folder_.emplace(std::move(*folder));
    path = timers->folder_->path() + "/timers";
  }
  TimerFile::Callbacks calls;
  calls.on_expired = [raw = timers.get()](const run::FileTimer& timer) { raw->expire(timer); };
  calls.on_warning = timers->callbacks_.remark;
  auto opened = TimerFile::open(io, std::move(path), std::move(calls));
  if (!opened) return opened.error();
  timers->file_ = std::move(*opened);
  return timers;
}

void NodeTimers::begin_generation() {
  expired_.clear();
  file_->forget_all();
}

std::optional<std::string> NodeTimers::expired(Rank rank) const {
  auto found = expired_.find(rank);
  return found == expired_.end() ? std::nullopt : std::optional(found->second);
}

void NodeTimers::expire(const run::FileTimer& timer) {
  auto found = find_timed(timer.pid, callbacks_.find_rank);
  if (!found) return;  // it has ended, or is none of the ranks' processes
  auto scope = printable(timer.scope.substr(0, kLongestScope));
  auto who = fmt::format("rank {}: the timer \"{}\" of process {} has expired", found->rank.value, scope, timer.pid);
  if (timer.signal <= 0) return callbacks_.remark(who + ", and names no signal to end it with");
  callbacks_.remark(fmt::format("{}, which is sent {}", who, run::signal_name(timer.signal)));
  expired_[found->rank] = std::move(scope);
  signal_processes({found->process}, {timer.signal});
}

}  // namespace taas::node
