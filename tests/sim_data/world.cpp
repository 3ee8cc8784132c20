#include "world.hpp"

#include <fmt/format.h>

#include <utility>

namespace taas::sim_data {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

}  // namespace

World::World(std::uint64_t seed, Settings settings) : agenda_(kStart), random_(seed), settings_(std::move(settings)) {
  for (double slowness : settings_.slowness) add_worker(slowness);
  for (const auto& loader : settings_.loaders) loaders_.emplace_back().settings = loader;
}

RunOutcome World::run() {
  start_rank();
  for (int fault = 0; fault < settings_.faults; ++fault) {
    agenda_.after(random_.up_to(expected_length()), [this] { draw_fault(); });
  }
  if (settings_.frozen >= 0) agenda_.after(1s, [this] { freeze(settings_.frozen, {}, true); });
  while (!all_done() && outcome_.violations.empty() && agenda_.now() < kStart + bound() && agenda_.step()) {
  }
  outcome_.length = agenda_.now() - kStart;
  require(!outcome_.violations.empty() || all_done(), "the run does not end");
  for (std::size_t loader = 0; loader < loaders_.size() && all_done(); ++loader) {
    require(loaders_[loader].delivered == expected(static_cast<int>(loader)), "other batches than undisturbed");
  }
  if (referee_) outcome_.copies += referee_->copies();
  if (referee_) outcome_.beyond_credits += referee_->beyond_credits();
  return outcome_;
}

void World::require(bool holds, const std::string& what) {
  if (!holds) outcome_.violations.push_back(fmt::format("{:.6f} s: {}", seconds(agenda_.now() - kStart), what));
}

void World::say(const std::string& line) {
  if (on_line) on_line(fmt::format("{:10.6f} {}", seconds(agenda_.now() - kStart), line));
}

void World::feed(const ScheduleEvent& event, std::uint64_t content) {
  if (!referee_) return;
  for (const auto& action : referee_->handle(event)) {
    std::visit([&](const auto& decided) { act(decided, content); }, action);
  }
}

void World::act(const Assign& action, std::uint64_t) {
  say(fmt::format("task {}:{} to worker {}, attempt {}", action.task.stream, action.task.number, action.worker,
                  action.attempt));
  auto& to = worker(action.worker);
  if (!to.connected) return require(false, "a task for a worker without a link");
  Order sent = order(action);
  sent.impossible =
      settings_.returns > 0 &&
      content(sent.loader, sent.epoch, sent.batch + 7919 * static_cast<std::uint64_t>(action.worker + 1)) % 10007 %
              100 <
          static_cast<std::uint64_t>(settings_.returns);
  to.pipes.down->send([&to, sent, mine = to.connection] {
    if (mine == to.connection) to.machine->receive(sent);
  });
}

void World::act(const Withdraw& action, std::uint64_t) {
  say(fmt::format("attempt {} is withdrawn from worker {}", action.attempt, action.worker));
  auto& from = worker(action.worker);
  from.pipes.down->send([&from, attempt = action.attempt, mine = from.connection] {
    if (mine == from.connection) from.machine->withdraw(attempt);
  });
}

void World::act(const Keep& action, std::uint64_t content) {
  say(fmt::format("task {}:{} is here", action.task.stream, action.task.number));
  keep(action.task, content);
}

void World::act(const GiveUp& action, std::uint64_t) {
  say(fmt::format("task {}:{} is given up", action.task.stream, action.task.number));
  ++outcome_.given_up;
  keep(action.task, 0);
}

void World::act(const SetAlarm& action, std::uint64_t) {
  agenda_.at(action.at, [this, mine = ++alarm_] {
    if (mine == alarm_) feed(AlarmRang{agenda_.now()});
  });
}

}  // namespace taas::sim_data
