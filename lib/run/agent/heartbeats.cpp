#include "run/agent/heartbeats.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestDoubt = 2s;
constexpr Duration kAskAgain = 1s;
constexpr Duration kWakePatience = 5s;  // machines do not wake at the same instant

}  // namespace

void Heartbeats::on(const HeartbeatEcho& echo, bool aside) {
  answered_ = std::max(answered_, echo.sent);
  if (!aside) over_link_ = std::max(over_link_, echo.sent);
  if (woken_at_ && echo.sent >= *woken_at_) woken_at_.reset();
}

void Heartbeats::wake(Instant since, Instant now) {
  const bool answered = since < answered_ + std::max(doubt(), 3 * policy_.heartbeat_interval);  // one may be under way
  if (woken_at_ || !answered) return;
  woken_at_ = now;
  over_link_ = now;
}

Duration Heartbeats::doubt() const { return std::min(policy_.fence_after() / 3, kLongestDoubt); }

bool Heartbeats::take_ask(Instant now) {
  if (now < answered_ + doubt() || now < asked_ + kAskAgain) return false;
  asked_ = now;
  return true;
}

/// A link that carries nothing for twice the time after which a node is lost never will again: TCP tries again after as
/// long as the network was cut, and no cut of that length is outlived. Who wakes before the coordinator can have given
/// this node up has killed its ranks by then; who wakes later was given up long ago, unless the coordinator slept, too.
Instant Heartbeats::fence_at() const {
  const auto fence_at = std::min(answered_ + policy_.fence_after(), over_link_ + 2 * policy_.lost_after);
  if (!woken_at_) return fence_at;
  const auto patience_ends = *woken_at_ + std::min(policy_.fence_after(), kWakePatience);
  const auto lost_at = answered_ + policy_.lost_after;
  const auto latest = *woken_at_ < lost_at ? std::min(patience_ends, lost_at - policy_.lost_after / 10) : patience_ends;
  return std::max(fence_at, latest);
}

}  // namespace taas::run
