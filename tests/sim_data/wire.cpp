#include <fmt/format.h>

#include "world.hpp"

namespace taas::sim_data {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSilence = 3s;  // without a ping: then the worker counts as lost
constexpr Duration kRetry = 300ms;

}  // namespace

void World::add_worker(double slowness) {
  auto index = static_cast<WorkerIndex>(workers_.size());
  auto& added = *workers_.emplace_back(std::make_unique<Worker>());
  added.path.delay = settings_.delay;
  added.machine = std::make_unique<Machine>(agenda_, slowness, settings_.abandons);
  added.machine->started = [this, index](Attempt attempt) {
    said(
        index,
        [this, index, attempt] {
          return Started{index, attempt, agenda_.now()};
        },
        0);
  };
  added.machine->made = [this, index](const Order& order) {
    auto happened = [this, index, attempt = order.attempt, impossible = order.impossible]() -> ScheduleEvent {
      if (impossible) return Returned{index, attempt, agenda_.now()};
      return Arrived{index, attempt, agenda_.now()};
    };
    said(index, happened, content(order.loader, order.epoch, order.batch));
  };
  if (referee_) connect(index);
}

/// Sent now, heard when it has arrived, unless the link is another one by then.
void World::said(WorkerIndex index, std::function<ScheduleEvent()> what, std::uint64_t content) {
  auto& from = worker(index);
  if (!from.connected) return;
  from.pipes.up->send([this, &from, what, content, mine = from.connection] {
    if (from.connected && mine == from.connection) feed(what(), content);
  });
}

/// Tries until there is a link, or the rank is another one.
void World::connect(WorkerIndex index) {
  auto& to = worker(index);
  if (!referee_ || to.connected || to.stays_away) return;
  if (to.path.cut || !to.machine->alive() || to.machine->frozen()) {
    return agenda_.after(kRetry, [this, index, life = life_, mine = to.connection] {
      if (life == life_ && mine == worker(index).connection) connect(index);
    });
  }
  say(fmt::format("worker {} is up", index));
  to.connected = true;
  ++to.connection;
  to.peer = to.machine->life();
  to.pipes = {std::make_shared<sim::Pipe>(agenda_, to.path), std::make_shared<sim::Pipe>(agenda_, to.path)};
  feed(WorkerUp{index, agenda_.now()});
}

/// The link is closed at the rank's end; the worker sees it when it can.
void World::lose(WorkerIndex index) {
  auto& from = worker(index);
  if (!from.connected) return;
  say(fmt::format("worker {} is down", index));
  from.connected = false;
  ++from.connection;
  ++outcome_.downs;
  if (from.machine->alive()) from.machine->drop_all();
  feed(WorkerDown{index, agenda_.now()});
  connect(index);
}

void World::fall_silent(WorkerIndex index) {
  agenda_.after(kSilence, [this, index, mine = worker(index).silence] {
    if (mine == worker(index).silence) lose(index);
  });
}

void World::heard(WorkerIndex index) {
  auto& back = worker(index);
  if (back.path.cut || back.machine->frozen()) return;
  ++back.silence;
  if (!back.connected) return;
  if (!back.machine->alive() || back.machine->life() != back.peer) return lose(index);  // its machine resets the link
  back.pipes.down->retry({});
  back.pipes.up->retry({});
}

}  // namespace taas::sim_data
