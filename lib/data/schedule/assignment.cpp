#include "data/schedule/assignment.hpp"

#include <algorithm>
#include <tuple>

namespace taas::data {
namespace {

constexpr Duration kStartTogether = std::chrono::seconds(1);

}  // namespace

void Assignment::run() {
  while (assign_one()) {
  }
}

bool Assignment::assign_one() {
  if (!workers_.anyone_has_room()) return false;
  auto turns = streams_.turns();
  return std::any_of(turns.begin(), turns.end(),
                     [this](const Turn& turn) { return assign_from(turn.stream, streams_.at(turn.stream)); });
}

/// The lowest number that somebody can take now.
bool Assignment::assign_from(StreamId id, Stream& stream) {
  WorkerIndex anyone = least_busy(stream, nullptr);
  WorkerIndex chosen = kNobody;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [key, numbers] : stream.queues()) {
    std::uint64_t number = *numbers.begin();
    if (number >= lowest) continue;
    WorkerIndex by = taker(stream, key, anyone);
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  for (auto number : stream.returned()) {
    if (number >= lowest) break;
    WorkerIndex by = least_busy(stream, &stream.task(number));
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  if (chosen == kNobody || !streams_.may_send(stream, lowest)) return false;
  const auto& task = stream.task(lowest);
  if (task.pinned && task.returners.empty()) stream.set_home(task.preferred, chosen);
  stream.dequeue(lowest);
  attempts_.send(chosen, {id, lowest});
  return true;
}

/// Who takes the task now, or nobody. One that is preferred and busy is waited for, unless somebody else has nothing.
WorkerIndex Assignment::taker(const Stream& stream, const QueueKey& key, WorkerIndex anyone) {
  auto [pinned, preferred] = key;
  if (pinned) {
    if (auto until = awaited_until(preferred)) {
      decisions_.wake_at(*until);
      return kNobody;
    }
    WorkerIndex host = home(stream, preferred);
    return host != kNobody && workers_.has_room(workers_[host]) ? host : kNobody;
  }
  if (!workers_.is_up(preferred)) return anyone;
  if (workers_.has_room(workers_[preferred])) return preferred;
  return anyone != kNobody && workers_[anyone].is_idle() ? anyone : kNobody;
}

/// Who has room and the fewest tasks, of all or of those who have not returned this one.
WorkerIndex Assignment::least_busy(const Stream& stream, const TaskState* task) const {
  using Order = std::tuple<std::size_t, bool, std::uint64_t, WorkerIndex>;
  std::optional<Order> best;
  const auto size = workers_.size();
  for (WorkerIndex place = 0; place < size; ++place) {
    WorkerIndex index = (place + policy_.first) % size;
    const auto& worker = workers_[index];
    if (!workers_.has_room(worker) || (task != nullptr && task->returned_by(index))) continue;
    bool others_first =
        (worker.rests(decisions_.now()) && pace_.anyone_rested()) || pace_.is_too_slow(worker, streams_.window(stream));
    if (task == nullptr && others_first) continue;
    Order order{worker.attempts().size(), worker.is_stale(), worker.served(), place};
    if (!best || order < *best) best = order;
  }
  return best ? (std::get<WorkerIndex>(*best) + policy_.first) % size : kNobody;
}

/// Who gets the pinned tasks of this worker: who had the last of them, else the worker itself, else somebody with few.
WorkerIndex Assignment::home(const Stream& stream, WorkerIndex preferred) const {
  if (auto last = stream.home_of(preferred); workers_.is_up(last)) return last;
  if (workers_.is_up(preferred)) return preferred;
  const auto hosted = stream.count_hosted(workers_.all().size());
  WorkerIndex best = kNobody;
  for (WorkerIndex index = 0; index < workers_.size(); ++index) {
    if (!workers_.is_up(index)) continue;
    bool fewer = best == kNobody || hosted[static_cast<std::size_t>(index)] < hosted[static_cast<std::size_t>(best)];
    if (fewer) best = index;
  }
  return best;
}

/// Workers start together, one of them is there first, and who gets a pinned task has all that follow it.
std::optional<Instant> Assignment::awaited_until(WorkerIndex preferred) const {
  const auto& wanted = workers_[preferred];
  const auto first_up = workers_.first_up();
  if (wanted.was_up() || !first_up) return std::nullopt;
  auto until = std::max(*first_up, wanted.wanted().value_or(*first_up)) + kStartTogether;
  return decisions_.now() < until ? std::optional(until) : std::nullopt;
}

}  // namespace taas::data
