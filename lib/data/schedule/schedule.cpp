#include "data/schedule/schedule.hpp"

#include <algorithm>

#include "data/schedule/schedule_state.hpp"

namespace taas::data {
namespace {

constexpr Duration kRest = std::chrono::seconds(1);  // of a worker that has returned a task

}  // namespace

Schedule::Schedule(SchedulePolicy policy) : state_(std::make_unique<State>()) { state_->policy = policy; }
Schedule::~Schedule() = default;

std::vector<ScheduleAction> Schedule::handle(const ScheduleEvent& event) {
  std::visit(
      [this](const auto& happened) {
        state_->now = happened.at;
        state_->on(happened);
      },
      event);
  state_->assign_all();
  state_->hedge_all();
  return std::exchange(state_->actions, {});
}

bool TaskState::returned_by(WorkerIndex worker) const {
  return std::find(returners.begin(), returners.end(), worker) != returners.end();
}

void Mean::add(Duration sample) {
  constexpr int kMostChange = 3;             // a sample counts as at most so many times the mean
  int weight = sample < value_ / 2 ? 1 : 4;  // of what is known against the sample
  value_ = known_ ? (value_ * weight + std::min(sample, value_ * kMostChange)) / (weight + 1) : sample;
  value_ = std::max(value_, Duration(1));
  known_ = true;
}

void Schedule::State::on(const WorkerUp& event) {
  forget_attempts(event.worker);
  auto& arrived = worker(event.worker);
  arrived.up = arrived.was_up = true;
  if (!first_up) first_up = now;
  arrived.since = now;
  for (auto& [id, stream] : streams) give_up_hopeless(id, stream);
}

void Schedule::State::on(const WorkerDown& event) {
  worker(event.worker).up = false;
  forget_attempts(event.worker);
  for (auto& [id, stream] : streams) give_up_hopeless(id, stream);
}

void Schedule::State::on(const Submitted& event) {
  auto [found, fresh] = streams.try_emplace(event.task.stream);
  auto& stream = found->second;
  if (fresh) stream.head = event.task.number;
  auto& task = stream.tasks.emplace_back();
  task.preferred = event.preferred;
  task.pinned = event.pinned && event.preferred != kNobody;
  if (task.pinned && !worker(event.preferred).wanted) worker(event.preferred).wanted = now;
  enqueue(stream, event.task.number);
}

void Schedule::State::on(const Started& event) {
  auto found = attempts.find(event.attempt);
  if (found == attempts.end()) return;
  auto& by = worker(event.worker);
  if (!by.running && by.attempts.size() == 1) by.starting.add(now - by.since);
  by.running = event.attempt;
  by.stale.reset();
  by.since = now;
  found->second.started = now;
}

void Schedule::State::on(const Arrived& event) {
  auto& by = worker(event.worker);
  if (by.stale == event.attempt) by.stale.reset();
  auto ended = end(event.attempt);
  if (!ended) return actions.push_back(Discard{event.attempt});
  by.making.add(ended->started ? now - *ended->started : std::max(event.took, now - by.since));
  if (!by.running) by.since = now;
  auto& task = stream(ended->task.stream)->task(ended->task.number);
  task.here = true;
  count(*stream(ended->task.stream), 1);
  actions.push_back(Keep{event.attempt, ended->task});
  for (auto other : std::vector(task.attempts)) withdraw(other);
}

void Schedule::State::on(const Returned& event) {
  auto& by = worker(event.worker);
  if (by.stale == event.attempt) by.stale.reset();
  auto ended = end(event.attempt);
  if (!ended) return;
  if (!by.running) by.since = now;
  by.rests_until = now + kRest;
  wake_at(by.rests_until);
  auto& from = *stream(ended->task.stream);
  auto& task = from.task(ended->task.number);
  task.returners.push_back(event.worker);
  if (task.attempts.empty()) give_up_or_queue(from, ended->task);
}

void Schedule::State::on(const Taken& event) {
  auto* from = stream(event.task.stream);
  if (from == nullptr || from->waits() || event.task.number != from->head) return;
  from->tasks.pop_front();
  ++from->head;
  count(*from, -1);
}

void Schedule::State::on(const StreamClosed& event) {
  auto* closed = stream(event.stream);
  if (closed == nullptr) return;
  for (auto& task : closed->tasks) {
    for (auto attempt : std::vector(task.attempts)) withdraw(attempt);
  }
  count(*closed, -closed->used);
  streams.erase(event.stream);
}

WorkerState& Schedule::State::worker(WorkerIndex index) {
  auto place = static_cast<std::size_t>(index);
  if (place >= workers.size()) workers.resize(place + 1);
  return workers[place];
}

bool Schedule::State::is_up(WorkerIndex index) const {
  auto place = static_cast<std::size_t>(index);
  return index >= 0 && place < workers.size() && workers[place].up;
}

bool Schedule::State::has_room(const WorkerState& worker) const {
  return worker.up && static_cast<int>(worker.attempts.size()) < depth_of(worker);
}

/// Each task that is on its way while another is made saves a round trip, which for a short one is most of its time.
int Schedule::State::depth_of(const WorkerState& worker) const {
  if (!worker.making.known() || policy.most <= policy.depth) return policy.depth;
  return static_cast<int>(std::clamp<std::int64_t>(policy.ahead / worker.making.value(), policy.depth, policy.most));
}

StreamState* Schedule::State::stream(StreamId id) {
  auto found = streams.find(id);
  return found == streams.end() ? nullptr : &found->second;
}

std::optional<AttemptState> Schedule::State::end(Attempt attempt) {
  auto found = attempts.find(attempt);
  if (found == attempts.end()) return std::nullopt;
  AttemptState ended = found->second;
  attempts.erase(found);
  auto& from = *stream(ended.task.stream);
  std::erase(from.task(ended.task.number).attempts, attempt);
  count(from, -1);
  auto& by = worker(ended.worker);
  std::erase(by.attempts, attempt);
  if (by.running == attempt) {
    by.running.reset();
    by.since = now;
  }
  return ended;
}

/// What it worked on, as it said, may be what ended it; which of the others it had begun is not known, but will be.
void Schedule::State::forget_attempts(WorkerIndex index) {
  const auto running = worker(index).running;
  for (auto attempt : std::vector(worker(index).attempts)) {
    auto ended = end(attempt);
    auto& from = *stream(ended->task.stream);
    auto& task = from.task(ended->task.number);
    task.suspect = true;
    if (attempt == running) ++task.deaths;
    if (!task.attempts.empty()) continue;
    if (task.deaths < policy.most_deaths) {
      enqueue(from, ended->task.number);
    } else {
      give_up(from, ended->task, task.deaths);
    }
  }
  worker(index).stale.reset();
}

/// A worker that is stopped in the middle of a task needs at least as long as it has needed so far.
void Schedule::State::withdraw(Attempt attempt) {
  auto ended = end(attempt);
  auto& by = worker(ended->worker);
  actions.push_back(Withdraw{ended->worker, attempt});
  if (!ended->started) return;
  by.stale = attempt;
  if (auto took = now - *ended->started; !by.making.known() || took > by.making.value()) by.making.add(took);
}

void Schedule::State::count(StreamState& stream, int more) {
  stream.used += more;
  used += more;
}

bool Schedule::State::is_hopeless(const TaskState& task) const {
  if (task.here || task.returners.empty() || !task.attempts.empty()) return false;
  bool anyone = false;
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers.size()); ++index) {
    if (!is_up(index)) continue;
    anyone = true;
    if (!task.returned_by(index)) return false;
  }
  return anyone;
}

void Schedule::State::give_up_or_queue(StreamState& stream, const Task& task) {
  auto& state = stream.task(task.number);
  if (!is_hopeless(state)) return enqueue(stream, task.number);
  give_up(stream, task, 0);
}

void Schedule::State::give_up(StreamState& stream, const Task& task, int deaths) {
  stream.task(task.number).here = true;
  count(stream, 1);
  actions.push_back(GiveUp{task, deaths});
}

void Schedule::State::give_up_hopeless(StreamId id, StreamState& stream) {
  for (auto number : std::vector(stream.returned.begin(), stream.returned.end())) {
    dequeue(stream, number);
    give_up_or_queue(stream, {id, number});
  }
}

}  // namespace taas::data
