#include "run/coordinator/silence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace taas::run {
namespace {

constexpr auto kSilence = std::chrono::seconds(1);          // more than a few heartbeats
constexpr Duration kToComeBack = std::chrono::seconds(10);  // of agents that had given this process up
constexpr Duration kToldAfter = std::chrono::seconds(3);
constexpr Duration kToldWith = std::chrono::milliseconds(500);  // sooner, with one that is told: heartbeats are apart

}  // namespace

void Silence::watch(AgentId agent, Instant now) {
  heard_[agent].watched = true;
  if (!check_at_) check_at_ = now + std::min(policy_.lost_after, kToldAfter);
}

void Silence::on_sign_of_life(AgentId agent, Instant now) {
  auto& heard = heard_[agent];
  if (std::exchange(heard.told, false)) {
    --told_;
    returned_[agent] = now - heard.over_link;
    check_at_ = std::min(check_at_.value_or(now + kToldWith), now + kToldWith);
  }
  heard.at = heard.over_link = now;
}

void Silence::forget(AgentId agent) {
  auto known = heard_.find(agent);
  if (known == heard_.end()) return;
  told_ -= known->second.told ? 1 : 0;
  heard_.erase(known);
  returned_.erase(agent);
}

SilentAgents Silence::check(Instant now) {
  SilentAgents found;
  if (!check_at_ || *check_at_ > now) return found;
  for (const auto& [agent, heard] : heard_) {
    if (!heard.watched) continue;
    const auto silence = now - heard.over_link;
    if (now - heard.at >= policy_.lost_after) {
      found.lost.push_back(agent);
    } else if (!heard.told && silence >= kToldAfter - kToldWith) {
      found.silent.push_back(agent);
      found.silence = std::max(found.silence, silence);
    }
  }
  if (found.silence < kToldAfter) found.silent.clear();
  for (AgentId agent : found.silent) heard_.at(agent).told = true;
  told_ += static_cast<int>(found.silent.size());
  returned_are_due_ = !returned_.empty();
  plan_check(now);
  return found;
}

void Silence::plan_check(Instant now) {
  check_at_.reset();
  for (const auto& [agent, heard] : heard_) {
    const auto lost_at = heard.at + policy_.lost_after;
    const auto until = heard.told ? lost_at : std::min(lost_at, heard.over_link + kToldAfter);
    if (heard.watched && until > now && (!check_at_ || until < *check_at_)) check_at_ = until;
  }
}

ReturnedAgents Silence::take_returned() {
  ReturnedAgents taken;
  const bool due = std::exchange(returned_are_due_, false);
  if (returned_.empty() || (told_ > 0 && !due)) return taken;
  for (const auto& [agent, silence] : std::exchange(returned_, {})) {
    taken.agents.push_back(agent);
    taken.silence = std::max(taken.silence, silence);
  }
  return taken;
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
  for (auto& [agent, heard] : heard_) {
    heard.at = std::min(now, heard.at + stalled);
    heard.over_link = std::min(now, heard.over_link + stalled);
  }
  if (check_at_) *check_at_ += stalled;
  if (stalled < policy_.lost_after * 2 / 5) return false;  // agents wait a little longer for an answer
  stalled_ = stalled;
  excused_until_ = now + std::min(policy_.lost_after, kToComeBack);
  return true;
}

std::string Silence::reason_of_excused() const {
  return fmt::format("the coordinator had not answered it for {:.1f} s", seconds(stalled_));
}

}  // namespace taas::run
