#include "data/schedule/workers.hpp"

#include <algorithm>

namespace taas::data {
namespace {

constexpr Duration kRest = std::chrono::seconds(1);  // of a worker that has returned a task

}  // namespace

void Mean::add(Duration sample) {
  constexpr int kMostChange = 3;             // a sample counts as at most so many times the mean
  int weight = sample < value_ / 2 ? 1 : 4;  // of what is known against the sample
  value_ = known_ ? (value_ * weight + std::min(sample, value_ * kMostChange)) / (weight + 1) : sample;
  value_ = std::max(value_, Duration(1));
  known_ = true;
}

void Worker::come_up(Instant now) {
  up_ = was_up_ = true;
  since_ = now;
}

void Worker::want(Instant now) {
  if (!wanted_) wanted_ = now;
}

void Worker::send(Attempt attempt, Instant now) {
  if (attempts_.empty()) since_ = now;
  attempts_.push_back(attempt);
  served_ = attempt;
}

void Worker::begin(Attempt attempt, Instant now) {
  if (!running_ && attempts_.size() == 1) starting_.add(now - since_);
  running_ = attempt;
  stale_.reset();
  since_ = now;
}

void Worker::answer(Attempt attempt) {
  if (stale_ == attempt) stale_.reset();
}

void Worker::end(Attempt attempt, Instant now) {
  std::erase(attempts_, attempt);
  if (running_ != attempt) return;
  running_.reset();
  since_ = now;
}

void Worker::finish(std::optional<Instant> started, Duration took, Instant now) {
  making_.add(started ? now - *started : std::max(took, now - since_));
  if (!running_) since_ = now;
}

void Worker::give_back(Instant now) {
  if (!running_) since_ = now;
  rests_until_ = now + kRest;
}

void Worker::withdraw(Attempt attempt, Instant started, Instant now) {
  stale_ = attempt;
  if (auto took = now - started; !making_.known() || took > making_.value()) making_.add(took);
}

Worker& Workers::at(WorkerIndex index) {
  auto place = static_cast<std::size_t>(index);
  if (place >= workers_.size()) workers_.resize(place + 1);
  return workers_[place];
}

void Workers::come_up(WorkerIndex index, Instant now) {
  at(index).come_up(now);
  if (!first_up_) first_up_ = now;
}

bool Workers::is_up(WorkerIndex index) const { return index >= 0 && index < size() && (*this)[index].up(); }

bool Workers::has_room(const Worker& worker) const {
  return worker.up() && static_cast<int>(worker.attempts().size()) < depth_of(worker);
}

bool Workers::anyone_has_room() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const auto& worker) { return has_room(worker); });
}

/// Each task that is on its way while another is made saves a round trip, which for a short one is most of its time.
int Workers::depth_of(const Worker& worker) const {
  if (!worker.making().known() || policy_.most <= policy_.depth) return policy_.depth;
  auto ahead = policy_.ahead / worker.making().value();
  return static_cast<int>(std::clamp<std::int64_t>(ahead, policy_.depth, policy_.most));
}

Instant Workers::late_at(const Worker& busy, const Worker& idle) const {
  constexpr int kUnknown = 10;  // times hedge_after, when the idle worker has never made one
  if (!idle.making().known()) return busy.since() + policy_.hedge_after * kUnknown;
  Duration usual = idle.making().value();
  if (!busy.running()) usual += busy.starting().value();
  auto patience = std::chrono::duration_cast<Duration>(usual * policy_.hedge_factor);
  return busy.since() + std::max(policy_.hedge_after, patience);
}

bool Workers::answers(const Worker& worker, Instant now) const {
  return worker.is_idle() || late_at(worker, worker) > now;
}

Pace::Pace(const SchedulePolicy& policy, const Workers& workers, Instant now)
    : policy_(policy), workers_(workers), now_(now) {
  for (const auto& worker : workers.all()) {
    if (!worker.up() || worker.rests(now)) continue;
    rested_ = true;
    if (!worker.making().known() || !workers.answers(worker, now)) continue;
    fastest_ = std::min(fastest_, worker.making().value());
    a_second_ += 1 / seconds(worker.making().value());
  }
}

bool Pace::is_too_slow(const Worker& worker, std::size_t window) const {
  constexpr int kTryAgain = 10;
  Duration mine = worker.making().value();
  bool slow = worker.making().known() && a_second_ > 0 && seconds(mine) >= policy_.hedge_factor * seconds(fastest_);
  if (!slow) return false;
  if (worker.is_idle() && now_ - worker.since() > mine * kTryAgain) return false;
  double others = a_second_ - (workers_.answers(worker, now_) ? 1 / seconds(mine) : 0);
  return seconds(mine) * static_cast<double>(worker.attempts().size() + 1) * others > static_cast<double>(window);
}

}  // namespace taas::data
