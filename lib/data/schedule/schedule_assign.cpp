#include <algorithm>
#include <tuple>

#include "data/schedule/schedule_state.hpp"

namespace taas::data {
namespace {

constexpr Duration kStartTogether = std::chrono::seconds(1);

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
  together = pace();
  while (assign_one()) {
  }
}

/// A loop that waits comes first; then who holds the fewest credits; then who was served longest ago.
bool Schedule::State::assign_one() {
  if (!anyone_has_room()) return false;
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
  WorkerIndex anyone = least_busy(stream, nullptr);
  WorkerIndex chosen = kNobody;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (auto& [key, numbers] : stream.queues) {
    std::uint64_t number = *numbers.begin();
    if (number >= lowest) continue;
    WorkerIndex by = taker(stream, key, anyone);
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  for (auto number : stream.returned) {
    if (number >= lowest) break;
    WorkerIndex by = least_busy(stream, &stream.task(number));
    if (by != kNobody) std::tie(chosen, lowest) = std::pair(by, number);
  }
  if (chosen == kNobody || !may_send(stream, lowest)) return false;
  const auto& task = stream.task(lowest);
  if (task.pinned && task.returners.empty()) stream.homes[task.preferred] = chosen;
  dequeue(stream, lowest);
  send(chosen, {id, lowest});
  return true;
}

bool Schedule::State::may_send(const StreamState& stream, std::uint64_t number) const {
  return used < credits || number == stream.head;
}

bool Schedule::State::anyone_has_room() const {
  return std::any_of(workers.begin(), workers.end(), [this](const auto& worker) { return has_room(worker); });
}

Pace Schedule::State::pace() const {
  Pace all;
  for (const auto& worker : workers) {
    bool answers = worker.attempts.empty() || late_at(worker, worker) > now;
    if (!worker.up || rests(worker)) continue;
    all.rested = true;
    if (!worker.making.known() || !answers) continue;
    all.fastest = std::min(all.fastest, worker.making.value());
    all.a_second += 1 / seconds(worker.making.value());
  }
  return all;
}

/// All others would wait for it: they make what may come after its task before it is done with that. Every now and then
/// it gets one even so, to see whether it has become faster.
bool Schedule::State::is_too_slow(const WorkerState& worker, const StreamState& stream) const {
  constexpr int kTryAgain = 10;
  Duration mine = worker.making.value();
  if (!worker.making.known() || together.a_second == 0 ||
      seconds(mine) < policy.hedge_factor * seconds(together.fastest))
    return false;
  if (worker.attempts.empty() && now - worker.since > mine * kTryAgain) return false;
  double others =
      together.a_second - (worker.attempts.empty() || late_at(worker, worker) > now ? 1 / seconds(mine) : 0);
  auto window = std::min(static_cast<std::size_t>(std::max(credits, 0)), stream.tasks.size());
  return seconds(mine) * static_cast<double>(worker.attempts.size() + 1) * others > static_cast<double>(window);
}

/// Who has room and the fewest tasks, of all or of those who have not returned this one.
WorkerIndex Schedule::State::least_busy(const StreamState& stream, const TaskState* task) const {
  using Order = std::tuple<std::size_t, bool, std::uint64_t, WorkerIndex>;
  std::optional<Order> best;
  const auto size = static_cast<WorkerIndex>(workers.size());
  for (WorkerIndex place = 0; place < size; ++place) {
    WorkerIndex index = (place + policy.first) % size;
    const auto& worker = workers[static_cast<std::size_t>(index)];
    if (!has_room(worker) || (task != nullptr && task->returned_by(index))) continue;
    bool others_first = (rests(worker) && together.rested) || is_too_slow(worker, stream);
    if (task == nullptr && others_first) continue;
    Order order{worker.attempts.size(), worker.stale.has_value(), worker.served, place};
    if (!best || order < *best) best = order;
  }
  return best ? (std::get<WorkerIndex>(*best) + policy.first) % size : kNobody;
}

/// Who gets the pinned tasks of this worker: who had the last of them, else the worker itself, else somebody with few.
WorkerIndex Schedule::State::home(const StreamState& stream, WorkerIndex preferred) const {
  auto last = stream.homes.find(preferred);
  if (last != stream.homes.end() && is_up(last->second)) return last->second;
  if (is_up(preferred)) return preferred;
  std::vector<int> hosted(workers.size());
  for (const auto& [owner, host] : stream.homes) ++hosted[static_cast<std::size_t>(host)];
  WorkerIndex best = kNobody;
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers.size()); ++index) {
    if (!is_up(index)) continue;
    bool fewer = best == kNobody || hosted[static_cast<std::size_t>(index)] < hosted[static_cast<std::size_t>(best)];
    if (fewer) best = index;
  }
  return best;
}

/// Workers start together, one of them is there first, and who gets a pinned task has all that follow it.
std::optional<Instant> Schedule::State::awaited_until(WorkerIndex preferred) const {
  const auto& wanted = workers[static_cast<std::size_t>(preferred)];
  if (wanted.was_up || !first_up) return std::nullopt;
  auto until = std::max(*first_up, wanted.wanted.value_or(*first_up)) + kStartTogether;
  return now < until ? std::optional(until) : std::nullopt;
}

/// Who takes the task now, or nobody. One that is preferred and busy is waited for, unless somebody else has nothing.
WorkerIndex Schedule::State::taker(const StreamState& stream, const QueueKey& key, WorkerIndex anyone) {
  auto [pinned, preferred] = key;
  if (pinned) {
    if (auto until = awaited_until(preferred)) {
      wake_at(*until);
      return kNobody;
    }
    WorkerIndex host = home(stream, preferred);
    return host != kNobody && has_room(worker(host)) ? host : kNobody;
  }
  if (!is_up(preferred)) return anyone;
  if (has_room(worker(preferred))) return preferred;
  return anyone != kNobody && worker(anyone).attempts.empty() ? anyone : kNobody;
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
  actions.push_back(Assign{index, attempt, task, from.task(task.number).suspect});
}

}  // namespace taas::data
