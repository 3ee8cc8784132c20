#include "data/schedule/attempts.hpp"

namespace taas::data {

void Attempts::send(WorkerIndex worker, const Task& task) {
  Attempt attempt = ++last_;
  auto& stream = streams_.at(task.stream);
  auto& state = stream.task(task.number);
  workers_.at(worker).send(attempt, decisions_.now());
  stream.note_served(attempt);
  state.attempts.push_back(attempt);
  streams_.use(stream, 1);
  attempts_.emplace(attempt, AttemptState{worker, task, decisions_.now(), std::nullopt});
  decisions_.emit(Assign{worker, attempt, task, state.suspect});
}

AttemptState* Attempts::find(Attempt attempt) {
  auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &found->second;
}

std::optional<AttemptState> Attempts::end(Attempt attempt) {
  auto found = attempts_.find(attempt);
  if (found == attempts_.end()) return std::nullopt;
  AttemptState ended = found->second;
  attempts_.erase(found);
  auto& stream = streams_.at(ended.task.stream);
  std::erase(stream.task(ended.task.number).attempts, attempt);
  streams_.use(stream, -1);
  workers_.at(ended.worker).end(attempt, decisions_.now());
  return ended;
}

void Attempts::withdraw(Attempt attempt) {
  auto ended = end(attempt);
  decisions_.emit(Withdraw{ended->worker, attempt});
  if (ended->started) workers_.at(ended->worker).withdraw(attempt, *ended->started, decisions_.now());
}

void Attempts::withdraw_all(const TaskState& task) {
  for (auto attempt : std::vector(task.attempts)) withdraw(attempt);
}

}  // namespace taas::data
