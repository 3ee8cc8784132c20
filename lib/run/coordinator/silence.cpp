#include "run/coordinator/silence.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::run {
namespace {

constexpr auto kSilence = std::chrono::seconds(1);  // more than a few heartbeats

}  // namespace

void Silence::watch(AgentId agent, Instant now) {
  heard_[agent].watched = true;
  if (!check_at_) check_at_ = now + policy_.lost_after;
}

std::vector<AgentId> Silence::expire(Instant now) {
  std::vector<AgentId> silent;
  if (!check_at_ || *check_at_ > now) return silent;
  check_at_.reset();
  for (const auto& [agent, heard] : heard_) {
    if (!heard.watched) continue;
    auto until = heard.at + policy_.lost_after;
    if (until <= now) {
      silent.push_back(agent);
    } else if (!check_at_ || until < *check_at_) {
      check_at_ = until;
    }
  }
  return silent;
}

AgentLoss Silence::loss_of_silent(AgentId agent, Instant now) const {
  return {fmt::format("no sign of life for {:g} s", seconds(policy_.lost_after)), last_heard(agent), now};
}

/// An agent that closed its link has ended, or kills its ranks now. One that does not know of it yet kills them when
/// its patience is over. After a silence the end of the link is no sign of life.
AgentLoss Silence::loss_of_link(const AgentLeft& event, Instant now) const {
  auto heard = last_heard(event.agent);
  auto gone_at = event.closed_by_agent ? now + policy_.closed_grace : heard + policy_.lost_after;
  auto silence = now - heard;
  if (silence <= kSilence) return {event.reason, now, gone_at};
  return {fmt::format("no sign of life for {:.1f} s, then {}", seconds(silence), event.reason), heard, gone_at};
}

bool Silence::excuse(Duration stalled, Instant now) {
  for (auto& [agent, heard] : heard_) heard.at = std::min(now, heard.at + stalled);
  if (check_at_) *check_at_ += stalled;
  if (stalled < policy_.lost_after * 2 / 5) return false;  // agents wait a little longer for an answer
  stalled_ = stalled;
  excused_until_ = now + policy_.lost_after;
  return true;
}

std::string Silence::reason_of_excused() const {
  return fmt::format("the coordinator had not answered it for {:.1f} s", seconds(stalled_));
}

}  // namespace taas::run
