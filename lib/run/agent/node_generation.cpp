#include "run/agent/node_generation.hpp"

#include <utility>

namespace taas::run {
namespace {

constexpr auto kAgentKillInterval = std::chrono::seconds(1);

}  // namespace

void NodeGeneration::begin(const StartRanks& order) {
  living_ = latest_ = order.generation;
  unborn_ = 0;
  for (const auto& share : order.shares) unborn_ += share.local_world_size;
}

std::optional<CoordinatorMessage> NodeGeneration::start(const StartRanks& order, Instant now) {
  bool newer = order.generation > latest_ && (!next_ || order.generation > next_->generation);
  if (!newer) return std::nullopt;
  if (lives()) {
    next_ = order;
    return kill(now);
  }
  begin(order);
  return order;
}

KillGeneration NodeGeneration::kill(Instant now) {
  kill_at_ = now + kAgentKillInterval;
  return {*living_};
}

bool NodeGeneration::end(Generation generation) {
  if (living_ != generation) return false;
  living_.reset();
  kill_at_.reset();
  return true;
}

void NodeGeneration::forget_next(Generation generation) {
  if (!next_ || next_->generation != generation) return;
  latest_ = generation;
  next_.reset();
}

std::optional<StartRanks> NodeGeneration::begin_next() {
  auto order = std::exchange(next_, std::nullopt);
  if (order) begin(*order);
  return order;
}

}  // namespace taas::run
