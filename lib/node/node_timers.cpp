#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "node/node_state.hpp"
#include "proc/family/descendants.hpp"
#include "run/events/words.hpp"

// Timers that ranks set: torchrun's TORCHELASTIC_ENABLE_FILE_TIMER.

namespace taas::node {
namespace {

constexpr const char* kEnable = "TORCHELASTIC_ENABLE_FILE_TIMER";
constexpr std::size_t kLongestScope = 100;  // of which is told
constexpr const char* kFile = "TORCHELASTIC_TIMER_FILE";

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

}  // namespace

Result<> Node::State::open_timers() {
  const auto& environment = options.machine.environment;
  if (options.store_addresses.empty() || value_of(environment, kEnable) != "1") return {};
  auto path = value_of(environment, kFile);
  if (path.empty() || TimerFile::in_use(path)) {
    auto folder = PrivateFolder::make(environment);
    if (!folder) return std::move(folder).error().with(kEnable);
    timer_folder.emplace(std::move(*folder));
    path = timer_folder->path() + "/timers";
  }
  TimerFile::Callbacks calls;
  calls.on_expired = [this](const run::FileTimer& timer) { expire(timer); };
  calls.on_warning = [this](std::string text) { remark(std::move(text)); };
  auto opened_file = TimerFile::open(io, std::move(path), std::move(calls));
  if (!opened_file) return opened_file.error();
  timers = std::move(*opened_file);
  addresses.timer_file = timers->path();
  return {};
}

/// Of a rank's process or a descendant of it, and of no other.
std::optional<Node::State::TimedProcess> Node::State::find_timed(int pid) const {
  std::map<int, Process> below;
  for (const auto& process : descendants()) below.emplace(process.pid, process);
  auto wanted = below.find(pid);
  if (wanted == below.end()) return std::nullopt;
  for (auto at = wanted; at != below.end(); at = below.find(at->second.parent)) {
    auto owner = std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank->pid() == at->first; });
    if (owner == ranks.end()) continue;
    return TimedProcess{wanted->second, places[static_cast<std::size_t>(owner - ranks.begin())].rank};
  }
  return std::nullopt;
}

void Node::State::expire(const run::FileTimer& timer) {
  auto found = find_timed(timer.pid);
  if (!found) return;  // it has ended, or is none of the ranks' processes
  auto scope = printable(timer.scope.substr(0, kLongestScope));
  auto who = fmt::format("rank {}: the timer \"{}\" of process {} has expired", found->rank.value, scope, timer.pid);
  if (timer.signal <= 0) return remark(who + ", and names no signal to end it with");
  remark(fmt::format("{}, which is sent {}", who, run::signal_name(timer.signal)));
  expired_timers[found->rank] = std::move(scope);
  signal_processes({found->process}, timer.signal);
}

}  // namespace taas::node
