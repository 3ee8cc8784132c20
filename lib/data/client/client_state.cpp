// What links tell the client, and what the schedule has it do about that.
#include "data/client/client_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/quiet_thread.hpp"

namespace taas::data {

namespace {

std::size_t payload_of(const Delivery& delivery) {
  const auto* batch = std::get_if<Batch>(&delivery);
  return batch ? batch->payload.size() : 0;
}

}  // namespace

Client::State::State(ClientOptions chosen)
    : options(std::move(chosen)),
      process(::getpid()),
      pool(options.budget_bytes),
      bell(std::make_shared<MemoryWaiters>()),
      schedule(options.schedule) {
  pool.on_room([held = bell] { held->ring(); });
  alarm_thread = quiet_thread([this] { ring_alarms(); });
}

void Client::State::up(WorkerIndex worker) {
  const std::lock_guard lock(mutex);
  auto& link = *links[static_cast<std::size_t>(worker)];
  link.up = true;
  link.refusals = 0;
  link.refusal.clear();
  apply(schedule.handle(WorkerUp{.worker = worker, .at = steady_now()}));
}

void Client::State::down(WorkerIndex worker, const std::string& why) {
  const std::lock_guard lock(mutex);
  auto& link = *links[static_cast<std::size_t>(worker)];
  link.orders.clear();
  if (!std::exchange(link.up, false)) return;
  std::erase_if(attempts, [worker](const auto& entry) { return entry.second.worker == worker; });
  if (!why.empty()) remarks.push_back(fmt::format("{} is lost: {}", link.address().name, why));
  apply(schedule.handle(WorkerDown{.worker = worker, .at = steady_now()}));
}

/// A worker that is not there yet may come. One that cannot prove the secret is none of this run's, unless just one
/// handshake was disturbed.
void Client::State::refused(WorkerIndex worker, const Error& why) {
  constexpr int kForGood = 3;
  const std::lock_guard lock(mutex);
  auto& link = *links[static_cast<std::size_t>(worker)];
  link.refusals = why.code == ErrorCode::kProtocol ? link.refusals + 1 : 0;
  if (link.refusals == kForGood) {
    remarks.push_back(fmt::format("{} cannot be used: {}", link.address().name, why.message));
  }
  link.refusal = link.refusals >= kForGood ? why.message : std::string();
  for (const auto& [id, stream] : streams) stream->changed.notify_all();
}

std::vector<LinkOrder> Client::State::take_orders(ClientLink& link) {
  const std::lock_guard lock(mutex);
  return std::exchange(link.orders, {});
}

bool Client::State::is_awaited(const Task& task) const {
  const auto found = streams.find(task.stream);
  return found != streams.end() && found->second->waits && found->second->taken == task.number;
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

void Client::State::arrived(WorkerIndex worker, Attempt attempt, Delivery delivery, Duration took) {
  std::optional<Delivery> late;  // let go after the mutex
  const std::lock_guard lock(mutex);
  attempts.erase(attempt);
  arriving = std::move(delivery);
  apply(schedule.handle(Arrived{.worker = worker, .attempt = attempt, .at = steady_now(), .took = took}));
  late = std::exchange(arriving, std::nullopt);
}

void Client::State::returned(WorkerIndex worker, Attempt attempt, const std::string& why) {
  const std::lock_guard lock(mutex);
  const auto found = attempts.find(attempt);
  if (found != attempts.end()) {
    const auto stream = streams.find(found->second.task.stream);
    if (stream != streams.end()) stream->second->returned[found->second.task.number] = why;
    attempts.erase(found);
  }
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
  if (!stream.sent.insert(action.task.number).second) {
    ++stream.statistics.hedged;
    ++totals.hedged;
  }
  attempts[action.attempt] = {.task = action.task, .worker = action.worker};
  const auto size = sizes.find(stream.definition.digest);
  links[static_cast<std::size_t>(action.worker)]->post(
      SendTask{.attempt = action.attempt,
               .task = action.task,
               .definition = stream.definition.digest,
               .payload = stream.payloads.at(action.task.number),
               .expected_bytes = size == sizes.end() ? 0 : size->second,
               .told = action.told});
}

void Client::State::apply(const Withdraw& action) {
  attempts.erase(action.attempt);
  links[static_cast<std::size_t>(action.worker)]->post(SendWithdraw{action.attempt});
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
  const auto& returned = streams.at(action.task.stream)->returned;
  const auto why = returned.find(action.task.number);
  keep(action.task, Undeliverable{why == returned.end() ? "no data worker can make it" : why->second});
}

void Client::State::apply(const SetAlarm& action) {
  const bool sooner = !alarm || action.at < *alarm;
  alarm = action.at;
  if (sooner) alarm_changed.notify_all();
}

void Client::State::keep(Task task, Delivery delivery) {
  auto& stream = *streams.at(task.stream);
  const auto bytes = payload_of(delivery);
  if (bytes > 0) sizes[stream.definition.digest] = bytes;
  stream.statistics.buffered_bytes += bytes;
  stream.payloads.erase(task.number);
  stream.sent.erase(task.number);
  stream.returned.erase(task.number);
  stream.kept.emplace(task.number, std::move(delivery));
  if (task.number == stream.taken) stream.changed.notify_all();
  if (bytes > largest) {
    largest = bytes;
    adjust_credits();
  }
}

/// Before the first batch nobody knows how many fit.
void Client::State::adjust_credits() {
  const auto few = std::max<int>(2, 2 * static_cast<int>(links.size()));
  const auto credits = largest > 0 ? pool.fitting(largest) : few;
  apply(schedule.handle(CreditsChanged{.credits = credits, .at = steady_now()}));
}

int Client::State::workers_up() const {
  return static_cast<int>(std::count_if(links.begin(), links.end(), [](const auto& link) { return link && link->up; }));
}

std::string Client::State::hopeless() const {
  std::string why = "there is no data worker";
  for (const auto& link : links) {
    const auto& address = link->address();
    if (address.address.empty() && address.unix_path.empty()) continue;
    if (link->refusal.empty()) return {};
    why = fmt::format("{} cannot be used: {}", address.name, link->refusal);
  }
  return why;
}

void Client::State::ring_alarms() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!alarm) {
      alarm_changed.wait(lock);
    } else if (steady_now() < *alarm) {
      alarm_changed.wait_until(lock, *alarm);
    } else {
      alarm.reset();
      apply(schedule.handle(AlarmRang{.at = steady_now()}));
    }
  }
}

void Client::State::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    alarm_changed.notify_all();
  }
  for (const auto& link : links) link->stop();
  alarm_thread.join();
}

}  // namespace taas::data
