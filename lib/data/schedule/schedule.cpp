#include "data/schedule/schedule.hpp"

#include <algorithm>

#include "data/schedule/assignment.hpp"
#include "data/schedule/attempts.hpp"
#include "data/schedule/hedging.hpp"

namespace taas::data {

/// What happens, and what becomes of tasks that somebody has failed to make.
struct Schedule::State {
  explicit State(SchedulePolicy given) : policy(given) {}

  void on(const WorkerUp& event);
  void on(const WorkerDown& event);
  void on(const Submitted& event);
  void on(const Started& event);
  void on(const Arrived& event);
  void on(const Returned& event);
  void on(const Taken& event);
  void on(const StreamClosed& event);
  void on(const CreditsChanged& event) { streams.set_credits(event.credits); }
  void on(const AlarmRang&) { decisions.alarm_rang(); }

  void lose_attempts(WorkerIndex index);
  /// Everybody who is up has returned it, and nobody makes it.
  [[nodiscard]] bool is_hopeless(const TaskState& task) const;
  void give_up_or_queue(const Task& task);
  void give_up(const Task& task, int deaths);
  void give_up_hopeless();

  const SchedulePolicy policy;
  ScheduleDecisions decisions;
  Streams streams;
  Workers workers{policy};
  Attempts attempts{decisions, streams, workers};
};

Schedule::Schedule(SchedulePolicy policy) : state_(std::make_unique<State>(policy)) {}
Schedule::~Schedule() = default;

std::vector<ScheduleAction> Schedule::handle(const ScheduleEvent& event) {
  State& state = *state_;
  std::visit(
      [&state](const auto& happened) {
        state.decisions.begin(happened.at);
        state.on(happened);
      },
      event);
  Assignment(state.policy, state.decisions, state.streams, state.workers, state.attempts).run();
  Hedging(state.decisions, state.streams, state.workers, state.attempts).run();
  return state.decisions.take();
}

void Schedule::State::on(const WorkerUp& event) {
  lose_attempts(event.worker);
  workers.come_up(event.worker, event.at);
  give_up_hopeless();
}

void Schedule::State::on(const WorkerDown& event) {
  workers.at(event.worker).go_down();
  lose_attempts(event.worker);
  give_up_hopeless();
}

void Schedule::State::on(const Submitted& event) {
  bool pinned = event.pinned && event.preferred != kNobody;
  if (pinned) workers.at(event.preferred).want(event.at);
  streams.open(event.task).add(event.preferred, pinned);
}

void Schedule::State::on(const Started& event) {
  auto* attempt = attempts.find(event.attempt);
  if (attempt == nullptr) return;
  workers.at(event.worker).begin(event.attempt, event.at);
  attempt->started = event.at;
}

void Schedule::State::on(const Arrived& event) {
  auto& by = workers.at(event.worker);
  by.answer(event.attempt);
  auto ended = attempts.end(event.attempt);
  if (!ended) return decisions.emit(Discard{event.attempt});
  by.finish(ended->started, event.took, event.at);
  auto& stream = streams.at(ended->task.stream);
  auto& task = stream.task(ended->task.number);
  task.here = true;
  streams.use(stream, 1);
  decisions.emit(Keep{event.attempt, ended->task});
  attempts.withdraw_all(task);
}

void Schedule::State::on(const Returned& event) {
  auto& by = workers.at(event.worker);
  by.answer(event.attempt);
  auto ended = attempts.end(event.attempt);
  if (!ended) return;
  by.give_back(event.at);
  decisions.wake_at(by.rests_until());
  auto& task = streams.task(ended->task);
  task.returners.push_back(event.worker);
  if (task.attempts.empty()) give_up_or_queue(ended->task);
}

void Schedule::State::on(const Taken& event) {
  auto* stream = streams.find(event.task.stream);
  if (stream == nullptr || stream->waits() || event.task.number != stream->head()) return;
  stream->remove_first();
  streams.use(*stream, -1);
}

void Schedule::State::on(const StreamClosed& event) {
  auto* closed = streams.find(event.stream);
  if (closed == nullptr) return;
  for (const auto& task : closed->tasks()) attempts.withdraw_all(task);
  streams.close(event.stream);
}

/// What it worked on, as it said, may be what ended it; which of the others it had begun is not known, but will be.
void Schedule::State::lose_attempts(WorkerIndex index) {
  auto& lost = workers.at(index);
  const auto running = lost.running();
  for (auto attempt : std::vector(lost.attempts())) {
    auto ended = attempts.end(attempt);
    auto& task = streams.task(ended->task);
    task.suspect = true;
    if (attempt == running) ++task.deaths;
    if (!task.attempts.empty()) continue;
    if (task.deaths < policy.most_deaths) {
      streams.at(ended->task.stream).enqueue(ended->task.number);
    } else {
      give_up(ended->task, task.deaths);
    }
  }
  lost.forget_stale();
}

bool Schedule::State::is_hopeless(const TaskState& task) const {
  if (task.here || task.returners.empty() || !task.attempts.empty()) return false;
  bool anyone = false;
  for (WorkerIndex index = 0; index < workers.size(); ++index) {
    if (!workers.is_up(index)) continue;
    anyone = true;
    if (!task.returned_by(index)) return false;
  }
  return anyone;
}

void Schedule::State::give_up_or_queue(const Task& task) {
  if (is_hopeless(streams.task(task))) return give_up(task, 0);
  streams.at(task.stream).enqueue(task.number);
}

void Schedule::State::give_up(const Task& task, int deaths) {
  auto& stream = streams.at(task.stream);
  stream.task(task.number).here = true;
  streams.use(stream, 1);
  decisions.emit(GiveUp{task, deaths});
}

void Schedule::State::give_up_hopeless() {
  for (auto& [id, stream] : streams.all()) {
    for (auto number : std::vector(stream.returned().begin(), stream.returned().end())) {
      stream.dequeue(number);
      give_up_or_queue({id, number});
    }
  }
}

}  // namespace taas::data
