#include "machine.hpp"

#include <utility>

namespace taas::sim_data {

std::uint64_t content(int loader, int epoch, std::uint64_t batch) {
  std::uint64_t mixed = (static_cast<std::uint64_t>(loader) << 48) ^ (static_cast<std::uint64_t>(epoch) << 32) ^ batch;
  return (mixed + 1) * 0x9e3779b97f4a7c15ULL;
}

void Machine::receive(const Order& order) {
  if (frozen_) return unread_.push_back([this, order] { receive(order); });
  queue_.emplace(std::pair(order.task.number, order.attempt), order);
  begin();
}

void Machine::withdraw(data::Attempt attempt) {
  if (frozen_) return unread_.push_back([this, attempt] { withdraw(attempt); });
  std::erase_if(queue_, [attempt](const auto& entry) { return entry.second.attempt == attempt; });
  if (!running_ || running_->attempt != attempt || !abandons_) return;
  wanted_ = false;
  finish();
}

void Machine::drop_all() {
  if (frozen_) return unread_.push_back([this] { drop_all(); });
  queue_.clear();
  wanted_ = false;
}

void Machine::kill() {
  alive_ = frozen_ = false;
  ++ticket_;
  running_.reset();
  queue_.clear();
  unread_.clear();
  positions_.clear();
}

void Machine::start() {
  alive_ = true;
  ++life_;
}

void Machine::freeze() {
  if (frozen_) return;
  frozen_ = true;
  ++ticket_;
  if (running_) remaining_ = done_at_ - agenda_.now();
}

void Machine::thaw() {
  if (!frozen_) return;
  frozen_ = false;
  if (running_) run_for(remaining_);
  for (auto& read : std::exchange(unread_, {})) read();
}

void Machine::begin() {
  if (running_ || queue_.empty()) return;
  running_ = std::move(queue_.begin()->second);
  queue_.erase(queue_.begin());
  wanted_ = true;
  started(running_->attempt);
  run_for(duration_of(*running_));
}

void Machine::run_for(Duration duration) {
  done_at_ = agenda_.now() + duration;
  agenda_.at(done_at_, [this, mine = ++ticket_] {
    if (mine == ticket_) finish();
  });
}

void Machine::finish() {
  ++ticket_;
  auto order = *std::exchange(running_, std::nullopt);
  if (wanted_) made(order);
  begin();
}

/// A shard of an iterable dataset is read again from its beginning when it stands elsewhere.
Duration Machine::duration_of(const Order& order) {
  Duration cost = order.impossible ? Duration(std::chrono::microseconds(100)) : order.cost;
  if (order.shard >= 0) {
    auto& position = positions_[{order.task.stream, order.shard}];
    std::uint64_t wanted = order.batch / static_cast<std::uint64_t>(order.shards);
    if (wanted < position) position = 0;
    cost += order.cost / 4 * static_cast<std::int64_t>(wanted - position);
    position = wanted + 1;
  }
  return std::chrono::duration_cast<Duration>(cost * slowness_);
}

}  // namespace taas::sim_data
