#include <algorithm>
#include <tuple>

#include "data/schedule_state.hpp"

namespace taas::data {
namespace {

QueueKey queue_of(const TaskState& task) { return {task.pinned, task.preferred}; }

}  // namespace

void Schedule::State::enqueue(StreamState& stream, std::uint64_t number) {
  const auto& task = stream.task(number);
  if (!task.returners.empty()) {
    stream.returned.insert(number);
  } else {
    stream.queues[queue_of(task)].insert(number);
  }
}

void Schedule::State::dequeue(StreamState& stream, std::uint64_t number) {
  if (stream.returned.erase(number) > 0) return;
  auto queue = stream.queues.find(queue_of(stream.task(number)));
  queue->second.erase(number);
  if (queue->second.empty()) stream.queues.erase(queue);
}

void Schedule::State::assign_all() {
  while (assign_one()) {
  }
}

/// A loop that waits comes first; then who holds the fewest credits; then who was served longest ago.
bool Schedule::State::assign_one() {
  using Order = std::tuple<bool, int, std::uint64_t, StreamId>;
  std::vector<Order> order;
  for (auto& [id, stream] : streams) {
    if (stream.queues.empty() && stream.returned.empty()) continue;
    order.emplace_back(!stream.waits(), stream.used, stream.served, id);
  }
  std::sort(order.begin(), order.end());
  return std::any_of(order.begin(), order.end(), [this](const Order& next) {
    StreamId id = std::get<3>(next);
    return assign_from(id, streams.at(id));
  });
}

/// The lowest number that somebody can take now.
bool Schedule::State::assign_from(StreamId id, StreamState& stream) {
  WorkerIndex anyone = least_busy(nullptr);
  if (anyone == kNobody) return false;
  WorkerIndex chosen = kNobody;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (auto& [key, numbers] : stream.queues) {
    std::uint64_t number = *numbers.begin();
    if (number >= lowest) continue;
    WorkerIndex by = taker(stream, key, number, anyone);
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  for (auto number : stream.returned) {
    if (number >= lowest) break;
    WorkerIndex by = least_busy(&stream.task(number));
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  if (chosen == kNobody || !may_send(stream, lowest)) return false;
  dequeue(stream, lowest);
  send(chosen, {id, lowest});
  return true;
}

bool Schedule::State::may_send(const StreamState& stream, std::uint64_t number) const {
  return used < credits || number == stream.head;
}

/// Who has room and the fewest tasks, of all or of those who have not returned this one.
WorkerIndex Schedule::State::least_busy(const TaskState* task) const {
  using Order = std::tuple<std::size_t, bool, std::uint64_t, WorkerIndex>;
  std::optional<Order> best;
  const auto size = static_cast<WorkerIndex>(workers.size());
  for (WorkerIndex place = 0; place < size; ++place) {
    WorkerIndex index = (place + policy.first) % size;
    const auto& worker = workers[static_cast<std::size_t>(index)];
    if (!has_room(worker) || (task != nullptr && task->returned_by(index))) continue;
    Order order{worker.attempts.size(), worker.stale.has_value(), worker.served, place};
    if (!best || order < *best) best = order;
  }
  return best ? (std::get<WorkerIndex>(*best) + policy.first) % size : kNobody;
}

/// Who has the pinned tasks of this worker: the worker itself, or the one that took them over when it was gone.
WorkerIndex Schedule::State::home(StreamState& stream, const TaskState& task) {
  auto [found, fresh] = stream.homes.try_emplace(task.preferred, task.preferred);
  if (is_up(found->second)) return found->second;
  std::vector<std::size_t> hosted(workers.size());
  for (const auto& [preferred, host] : stream.homes) {
    if (is_up(host)) ++hosted[static_cast<std::size_t>(host)];
  }
  WorkerIndex best = kNobody;
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers.size()); ++index) {
    if (!is_up(index)) continue;
    if (best == kNobody || hosted[static_cast<std::size_t>(index)] < hosted[static_cast<std::size_t>(best)])
      best = index;
  }
  if (best != kNobody) found->second = best;
  return best;
}

/// Who takes the task now, or nobody. One that is preferred and busy is waited for, unless somebody else has nothing.
WorkerIndex Schedule::State::taker(StreamState& stream, const QueueKey& key, std::uint64_t number, WorkerIndex anyone) {
  auto [pinned, preferred] = key;
  if (pinned) {
    WorkerIndex host = home(stream, stream.task(number));
    return host != kNobody && has_room(worker(host)) ? host : kNobody;
  }
  if (!is_up(preferred)) return anyone;
  if (has_room(worker(preferred))) return preferred;
  return worker(anyone).attempts.empty() ? anyone : kNobody;
}

void Schedule::State::send(WorkerIndex index, const Task& task) {
  auto& to = worker(index);
  auto& from = *stream(task.stream);
  Attempt attempt = ++last_attempt;
  if (to.attempts.empty()) to.since = now;
  to.attempts.push_back(attempt);
  to.served = from.served = ++assignments;
  from.task(task.number).attempts.push_back(attempt);
  count(from, 1);
  attempts.emplace(attempt, AttemptState{index, task, now, std::nullopt});
  actions.push_back(Assign{index, attempt, task});
}

}  // namespace taas::data
