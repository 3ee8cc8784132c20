// What links tell the client, and what the schedule has it do about that.
#include "data/client/client_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/log/log.hpp"

namespace taas::data {

Client::State::State(ClientOptions chosen)
    : options(std::move(chosen)),
      process(::getpid()),
      pool(options.budget_bytes),
      bell(std::make_shared<MemoryWaiters>()),
      schedule(options.schedule),
      alarm(mutex, [this] { apply(schedule.handle(AlarmRang{.at = steady_now()})); }) {
  pool.on_room([held = bell] { held->ring(); });
}

void Client::State::up(WorkerIndex worker) {
  const std::lock_guard lock(mutex);
  auto& link = links.at(worker);
  link.come_up();
  log::info(LogPart::kData, "linked with {}", link.address().name);
  apply(schedule.handle(WorkerUp{.worker = worker, .at = steady_now()}));
}

void Client::State::down(WorkerIndex worker, const std::string& why) {
  const std::lock_guard lock(mutex);
  auto& link = links.at(worker);
  if (!link.go_down()) return;
  log::info(LogPart::kData, "the link with {} is over: {}", link.address().name, why.empty() ? "closed here" : why);
  std::erase_if(attempts, [worker](const auto& entry) { return entry.second.worker == worker; });
  if (!why.empty()) remarks.push_back(fmt::format("{} is lost: {}", link.address().name, why));
  apply(schedule.handle(WorkerDown{.worker = worker, .at = steady_now()}));
}

void Client::State::refused(WorkerIndex worker, const Error& why) {
  const std::lock_guard lock(mutex);
  auto& link = links.at(worker);
  log::debug(LogPart::kData, "no link with {}: {}", link.address().name, why.message);
  if (link.refuse(why)) remarks.push_back(fmt::format("{} cannot be used: {}", link.address().name, why.message));
  for (const auto& [id, stream] : streams) stream->wake();
}

std::vector<LinkOrder> Client::State::take_orders(ClientLink& link) {
  const std::lock_guard lock(mutex);
  return link.take_orders();
}

bool Client::State::is_awaited(const Task& task) const {
  const auto found = streams.find(task.stream);
  return found != streams.end() && found->second->is_awaited(task.number);
}

Claim Client::State::claim(WorkerIndex worker, Attempt attempt, ClaimScope look) const {
  const std::lock_guard lock(mutex);
  const auto found = attempts.find(attempt);
  if (found == attempts.end()) return {};
  bool awaited = is_awaited(found->second.task);
  if (look == ClaimScope::kThorough) {
    awaited = std::any_of(attempts.begin(), attempts.end(), [&](const auto& entry) {
      return entry.second.worker == worker && is_awaited(entry.second.task);
    });
  }
  return {.wanted = true, .room = awaited ? Room::kAnyway : Room::kWithinBudget};
}

void Client::State::started(WorkerIndex worker, Attempt attempt) {
  const std::lock_guard lock(mutex);
  apply(schedule.handle(Started{.worker = worker, .attempt = attempt, .at = steady_now()}));
}

void Client::State::arrived(WorkerIndex worker, Attempt attempt, Outcome outcome, Duration took) {
  std::optional<Outcome> late;  // let go after the mutex
  const std::lock_guard lock(mutex);
  attempts.erase(attempt);
  arriving = std::move(outcome);
  apply(schedule.handle(Arrived{.worker = worker, .attempt = attempt, .at = steady_now(), .took = took}));
  late = std::exchange(arriving, std::nullopt);
}

void Client::State::returned(WorkerIndex worker, Attempt attempt, const std::string& why) {
  const std::lock_guard lock(mutex);
  const auto found = attempts.find(attempt);
  if (found != attempts.end()) {
    const auto stream = streams.find(found->second.task.stream);
    if (stream != streams.end()) stream->second->note_returned(found->second.task.number, why);
    attempts.erase(found);
  }
  log::info(LogPart::kData, "{} gave a batch back: {}", links.at(worker).address().name, why);
  apply(schedule.handle(Returned{.worker = worker, .attempt = attempt, .at = steady_now()}));
}

std::optional<Definition> Client::State::definition(const std::string& digest) {
  const std::lock_guard lock(mutex);
  const auto found = definitions.find(digest);
  return found == definitions.end() ? std::optional<Definition>() : found->second;
}

void Client::State::apply(const std::vector<ScheduleAction>& actions) {
  for (const auto& action : actions) {
    std::visit([this](const auto& what) { apply(what); }, action);
  }
}

void Client::State::apply(const Assign& action) {
  auto& stream = *streams.at(action.task.stream);
  if (!stream.note_sent(action.task.number)) ++totals.hedged;
  attempts[action.attempt] = {.task = action.task, .worker = action.worker};
  links.at(action.worker)
      .post(SendTask{.attempt = action.attempt,
                     .task = action.task,
                     .definition = stream.digest(),
                     .payload = stream.payload(action.task.number),
                     .expected_bytes = sizes.expected(stream.digest()),
                     .told = action.told});
}

void Client::State::apply(const Withdraw& action) {
  attempts.erase(action.attempt);
  links.at(action.worker).post(SendWithdraw{action.attempt});
}

void Client::State::apply(const Keep& action) { keep(action.task, std::move(*std::exchange(arriving, std::nullopt))); }

void Client::State::apply(const Discard&) {
  ++totals.late;  // it is let go by who brought it
}

void Client::State::apply(const GiveUp& action) {
  if (action.deaths > 0) {
    const auto why = fmt::format("{} data workers ended, or were lost, while they worked on it", action.deaths);
    return keep(action.task, Undeliverable{why});
  }
  keep(action.task, Undeliverable{streams.at(action.task.stream)->why_returned(action.task.number)});
}

void Client::State::keep(Task task, Outcome outcome) {
  auto& stream = *streams.at(task.stream);
  const auto is_largest = sizes.note(stream.digest(), payload_of(outcome));
  stream.keep(task.number, std::move(outcome));
  if (is_largest) adjust_credits();
}

/// Before the first batch nobody knows how many fit.
void Client::State::adjust_credits() {
  const auto few = std::max<int>(2, 2 * static_cast<int>(links.size()));
  const auto credits = sizes.largest() > 0 ? pool.fitting(sizes.largest()) : few;
  apply(schedule.handle(CreditsChanged{.credits = credits, .at = steady_now()}));
}

void Client::State::stop() {
  alarm.stop();
  links.stop();
}

}  // namespace taas::data
