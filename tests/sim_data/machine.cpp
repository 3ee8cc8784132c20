#include "machine.hpp"

#include <chrono>
#include <utility>

namespace taas::sim_data {
namespace {

constexpr std::uint64_t kRank = 1;  // the only client
constexpr std::size_t kMostDefinitions = 2;
constexpr auto kDefinitionsWay = std::chrono::microseconds(500);

data::Job job_of(const Order& order) {
  data::Job job;
  job.client = kRank;
  job.stream = order.task.stream;
  job.number = order.task.number;
  job.attempt = order.attempt;
  job.digest = std::to_string(order.loader);
  return job;
}

}  // namespace

std::uint64_t content(int loader, int epoch, std::uint64_t batch) {
  std::uint64_t mixed = (static_cast<std::uint64_t>(loader) << 48) ^ (static_cast<std::uint64_t>(epoch) << 32) ^ batch;
  return (mixed + 1) * 0x9e3779b97f4a7c15ULL;
}

void Machine::receive(const Order& order) {
  if (frozen_) return unread_.push_back([this, order] { receive(order); });
  orders_.emplace(order.attempt, order);
  auto job = job_of(order);
  auto definition = job.digest;
  bool here = definitions_.contains(definition);
  here ? queue_.add(std::move(job)) : queue_.add_waiting(std::move(job));
  if (!here) ask_for(definition);
  begin();
}

void Machine::ask_for(const std::string& definition) {
  if (!asked_.insert(definition).second) return;
  agenda_.after(kDefinitionsWay, [this, definition, life = life_, link = links_] {
    if (alive_ && life == life_ && link == links_) take_definition(definition);
  });
}

void Machine::take_definition(const std::string& definition) {
  if (frozen_)
    return unread_.push_back([this, definition, link = links_] {
      if (link == links_) take_definition(definition);
    });
  asked_.erase(definition);
  definitions_.insert(definition);
  queue_.add_definition(definition);
  begin();
}

/// Jobs that need it wait for it again.
void Machine::forget_a_definition() {
  if (definitions_.size() <= kMostDefinitions) return;
  auto definition = definitions_.extract(definitions_.begin()).value();
  queue_.remove_definition(definition);
  if (queue_.waiting_client(definition)) ask_for(definition);
}

void Machine::withdraw(data::Attempt attempt) {
  if (frozen_) return unread_.push_back([this, attempt] { withdraw(attempt); });
  if (queue_.remove(kRank, attempt)) orders_.erase(attempt);
  if (!running_ || running_->attempt != attempt || !abandons_) return;
  wanted_ = false;
  finish();
}

void Machine::drop_all() {
  if (frozen_) return unread_.push_back([this] { drop_all(); });
  queue_.remove_all_of(kRank);
  orders_.clear();
  asked_.clear();
  ++links_;
  wanted_ = false;
}

void Machine::kill() {
  alive_ = frozen_ = false;
  ++ticket_;
  running_.reset();
  queue_ = {};
  orders_.clear();
  definitions_.clear();
  asked_.clear();
  ++links_;
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
  running_ = orders_.extract(queue_.take()->attempt).mapped();
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
  forget_a_definition();
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
