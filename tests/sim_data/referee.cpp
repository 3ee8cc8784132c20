#include "referee.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace taas::sim_data {

Referee::Referee(SchedulePolicy policy, std::function<void(const std::string&)> complain)
    : policy_(policy), schedule_(policy), complain_(std::move(complain)) {}

void Referee::require(bool holds, const std::string& what) {
  if (!holds) complain_(what);
}

std::vector<ScheduleAction> Referee::handle(const ScheduleEvent& event) {
  expected_.reset();
  answers_ = 0;
  std::visit(
      [this](const auto& happened) {
        now_ = happened.at;
        on(happened);
      },
      event);
  auto decided = schedule_.handle(event);
  for (const auto& action : decided) std::visit([this](const auto& one) { check(one); }, action);
  check_answered(event);
  check_nothing_missed();
  return decided;
}

void Referee::on(const WorkerUp& event) {
  lose(event.worker);
  up_.insert(event.worker);
}

void Referee::on(const WorkerDown& event) {
  lose(event.worker);
  up_.erase(event.worker);
  for (auto& [id, stream] : streams_) {
    stream.lost.insert(event.worker);
    std::erase_if(stream.homes, [&](const auto& home) { return home.second == event.worker; });
  }
}

void Referee::on(const Submitted& event) {
  auto& stream = streams_[event.task.stream];
  if (stream.work.empty() && stream.head == 0) stream.head = event.task.number;
  stream.work.push_back({event.preferred, event.pinned, false, {}, {}});
  stream.unassigned.insert(event.task.number);
}

void Referee::on(const Arrived& event) {
  auto sent = sent_.find(event.attempt);
  if (sent == sent_.end()) return;
  Task task = sent->second.task;
  drop(event.attempt);
  find(task)->here = true;
  streams_.at(task.stream).unassigned.erase(task.number);
  ++used_;
  expected_ = task;
}

void Referee::on(const Returned& event) {
  auto sent = sent_.find(event.attempt);
  if (sent == sent_.end()) return;
  find(sent->second.task)->returners.insert(event.worker);
  drop(event.attempt);
}

void Referee::on(const Taken& event) {
  auto& stream = streams_.at(event.task.stream);
  require(event.task.number == stream.head && stream.work.front().here, "the simulation takes what is not there");
  stream.work.pop_front();
  ++stream.head;
  --used_;
}

void Referee::on(const StreamClosed& event) {
  auto stream = streams_.find(event.stream);
  if (stream == streams_.end()) return;
  for (auto& work : stream->second.work) used_ -= static_cast<int>(work.live.size()) + (work.here ? 1 : 0);
  streams_.erase(stream);
}

void Referee::check(const Assign& action) {
  require(action.attempt > newest_, fmt::format("attempt {} is used twice", action.attempt));
  newest_ = std::max(newest_, action.attempt);
  require(up_.contains(action.worker), fmt::format("a task for worker {}, which is down", action.worker));
  require(tasks_of(action.worker) < std::max(policy_.depth, policy_.most),
          fmt::format("more than its depth for worker {}", action.worker));
  auto* work = find(action.task);
  if (work == nullptr) return complain_(fmt::format("task {} is unknown or taken", action.task.number));
  auto& stream = streams_.at(action.task.stream);
  require(!work->here, fmt::format("task {} is made again", action.task.number));
  require(!work->returners.contains(action.worker), fmt::format("task {} for a returner", action.task.number));
  if (used_ >= credits_) {
    require(action.task.number == stream.head, fmt::format("task {} beyond the credits", action.task.number));
    ++beyond_credits_;
  }
  if (work->live.empty()) {
    if (work->returners.empty()) check_order(stream, action);
    check_home(stream, *work, action.worker);
  } else {
    ++copies_;
    require(work->live.size() == 1, fmt::format("a third copy of task {}", action.task.number));
    require(!work->pinned, fmt::format("a copy of pinned task {}", action.task.number));
    require(tasks_of(action.worker) == 0, fmt::format("a copy for worker {}, which is not idle", action.worker));
  }
  work->live.insert(action.attempt);
  stream.unassigned.erase(action.task.number);
  sent_[action.attempt] = {action.worker, action.task};
  ++used_;
}

/// No lower task that might have gone to the same worker is left behind.
void Referee::check_order(Stream& stream, const Assign& action) {
  for (auto number : stream.unassigned) {
    if (number >= action.task.number) break;
    auto* lower = find({action.task.stream, number});
    if (lower->preferred == kNone && !lower->returners.contains(action.worker)) {
      return complain_(fmt::format("task {} before task {}", action.task.number, number));
    }
  }
}

void Referee::check_home(Stream& stream, const Work& work, WorkerIndex worker) {
  if (work.preferred == kNone || !work.returners.empty()) return;
  bool room = up_.contains(work.preferred) && tasks_of(work.preferred) < policy_.depth;
  if (!work.pinned) {
    bool busy = up_.contains(work.preferred) && !room && tasks_of(worker) > 0;
    require(worker == work.preferred || (!room && !busy),
            fmt::format("worker {}'s preference is ignored", work.preferred));
    return;
  }
  require(may_host(stream, work.preferred, worker),
          fmt::format("pinned tasks of worker {} are torn apart", work.preferred));
  stream.homes[work.preferred] = worker;
  if (worker != work.preferred) stream.lost.insert(work.preferred);
}

bool Referee::may_host(const Stream& stream, WorkerIndex preferred, WorkerIndex worker) const {
  auto home = stream.homes.find(preferred);
  if (home != stream.homes.end()) return home->second == worker;
  return worker == preferred || !up_.contains(preferred) || stream.lost.contains(preferred);
}

void Referee::check(const Withdraw& action) {
  auto sent = sent_.find(action.attempt);
  if (sent == sent_.end()) return complain_(fmt::format("unknown attempt {} is withdrawn", action.attempt));
  require(sent->second.worker == action.worker, "an attempt is withdrawn from another worker");
  auto* work = find(sent->second.task);
  require(work == nullptr || work->here, fmt::format("task {} is withdrawn and wanted", sent->second.task.number));
  drop(action.attempt);
}

void Referee::check(const Keep& action) {
  ++answers_;
  require(expected_ == action.task, fmt::format("task {} is kept twice, or for another", action.task.number));
}

void Referee::check(const Discard& action) {
  ++answers_;
  require(!expected_, fmt::format("attempt {} is thrown away, and is the first", action.attempt));
}

void Referee::check(const GiveUp& action) {
  auto* work = find(action.task);
  if (work == nullptr || work->here)
    return complain_(fmt::format("task {} is given up, and is here", action.task.number));
  require(work->live.empty(), fmt::format("task {} is given up, and is being made", action.task.number));
  const bool too_deadly = action.deaths >= SchedulePolicy{}.most_deaths;
  require(too_deadly || everyone_returned(*work), fmt::format("task {} is given up too early", action.task.number));
  work->here = true;
  streams_.at(action.task.stream).unassigned.erase(action.task.number);
  ++used_;
}

void Referee::check(const SetAlarm& action) {
  require(action.at > now_, "an alarm in the past");
  alarm_ = action.at;
}

void Referee::check_answered(const ScheduleEvent& event) {
  require(answers_ == (std::holds_alternative<Arrived>(event) ? 1 : 0), "not one answer to what has arrived");
  for (const auto& [attempt, sent] : sent_) {
    auto* work = find(sent.task);
    require(work != nullptr && !work->here, fmt::format("attempt {} goes on for nothing", attempt));
  }
}

/// The first task that nobody has goes to somebody who may have it, unless one of these has no room and is waited for.
void Referee::check_nothing_missed() {
  for (auto& [id, stream] : streams_) {
    if (stream.unassigned.empty()) continue;
    auto number = *stream.unassigned.begin();
    if (used_ >= credits_ && number != stream.head) continue;
    const auto& work = *find({id, number});
    require(!everyone_returned(work), fmt::format("task {} is not given up", number));
    auto candidates = takers(stream, work);
    bool waits = std::all_of(candidates.begin(), candidates.end(),
                             [this](auto worker) { return tasks_of(worker) < policy_.depth; });
    require(candidates.empty() || !waits, fmt::format("task {} waits, and all who may have it have room", number));
  }
}

std::vector<WorkerIndex> Referee::takers(const Stream& stream, const Work& work) const {
  std::vector<WorkerIndex> found;
  for (auto worker : up_) {
    bool bound = work.pinned && work.returners.empty();
    bool certain = worker == work.preferred && !stream.lost.contains(worker);
    if (!work.returners.contains(worker) && (!bound || certain)) found.push_back(worker);
  }
  return found;
}

void Referee::lose(WorkerIndex worker) {
  std::vector<Attempt> lost;
  for (const auto& [attempt, sent] : sent_) {
    if (sent.worker == worker) lost.push_back(attempt);
  }
  for (auto attempt : lost) drop(attempt);
}

/// Not in the account any more; its task is unassigned when this was the last one.
void Referee::drop(Attempt attempt) {
  auto task = sent_.at(attempt).task;
  sent_.erase(attempt);
  auto* work = find(task);
  if (work == nullptr) return;
  work->live.erase(attempt);
  --used_;
  if (work->live.empty() && !work->here) streams_.at(task.stream).unassigned.insert(task.number);
}

Referee::Work* Referee::find(const Task& task) {
  auto stream = streams_.find(task.stream);
  if (stream == streams_.end() || task.number < stream->second.head) return nullptr;
  auto place = task.number - stream->second.head;
  return place < stream->second.work.size() ? &stream->second.work[place] : nullptr;
}

int Referee::tasks_of(WorkerIndex worker) const {
  return static_cast<int>(
      std::count_if(sent_.begin(), sent_.end(), [worker](const auto& entry) { return entry.second.worker == worker; }));
}

bool Referee::everyone_returned(const Work& work) const {
  return !up_.empty() &&
         std::all_of(up_.begin(), up_.end(), [&](auto worker) { return work.returners.contains(worker); });
}

}  // namespace taas::sim_data
