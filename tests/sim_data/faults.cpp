#include <fmt/format.h>

#include <algorithm>

#include "world.hpp"

namespace taas::sim_data {
namespace {

using namespace std::chrono_literals;

}  // namespace

/// Worker 0 always comes back.
void World::draw_fault() {
  auto index = random_.between(0, static_cast<int>(workers_.size()) - 1);
  bool for_good = index > 0 && random_.chance(20);
  int kind = random_.between(0, 99);
  if (settings_.credits_change) {
    settings_.credits = random_.between(1, 20);
    feed(CreditsChanged{settings_.credits, agenda_.now()});
  }
  if (kind < 30) return kill_worker(index, for_good);
  if (kind < 55) return freeze(index, 10ms + random_.up_to(8s), for_good);
  if (kind < 80) return cut(index, 10ms + random_.up_to(6s));
  if (kind < 90) return add_worker(1.0 + random_.between(0, 10) / 10.0);
  kill_rank();
}

void World::kill_worker(WorkerIndex index, bool for_good) {
  auto& victim = worker(index);
  if (!victim.machine->alive()) return;
  say(fmt::format("worker {} is killed", index));
  victim.machine->kill();
  victim.stays_away = victim.stays_away || for_good;
  if (!victim.path.cut) lose(index);  // otherwise nobody is told
  if (for_good) return;
  Duration away = 100ms + random_.up_to(3s);
  trouble_ += away;
  agenda_.after(away, [&victim] { victim.machine->start(); });
}

void World::freeze(WorkerIndex index, Duration length, bool for_good) {
  auto& victim = worker(index);
  if (!victim.machine->alive() || victim.machine->frozen()) return;
  say(fmt::format("worker {} is frozen", index));
  victim.machine->freeze();
  fall_silent(index);
  if (for_good) return;
  trouble_ += length;
  agenda_.after(length, [this, index] {
    say(fmt::format("worker {} is thawed", index));
    worker(index).machine->thaw();
    heard(index);
  });
}

void World::cut(WorkerIndex index, Duration length) {
  auto& victim = worker(index);
  if (victim.path.cut) return;
  say(fmt::format("the link to worker {} is cut", index));
  victim.path.cut = true;
  fall_silent(index);
  trouble_ += length;
  agenda_.after(length, [this, index] {
    say(fmt::format("the link to worker {} is back", index));
    worker(index).path.cut = false;
    heard(index);
  });
}

/// Of all batches one after the other, at the speed of the slowest worker, shards read again for each of them.
Duration World::bound() const {
  Duration all{};
  for (const auto& loader : settings_.loaders) {
    Duration batches = loader.cost * loader.batches;
    batches += loader.cost * (loader.slow_factor * loader.batches * loader.slow_percent / 100 + loader.slow_factor);
    if (loader.shards > 0) batches += batches * loader.batches / 8;
    all += (batches + loader.step * loader.batches) * loader.epochs + loader.begins;
  }
  constexpr int kSlowest = 10;
  return all * kSlowest * (1 + settings_.faults) + 2 * trouble_ + 60s;
}

/// When faults are to come.
Duration World::expected_length() const {
  Duration all{};
  for (const auto& loader : settings_.loaders) {
    Duration batch = loader.cost * 2 / static_cast<int>(settings_.slowness.size());
    all = std::max(all, loader.begins + std::max(batch, loader.step) * (loader.taken * loader.epochs));
  }
  return all;
}

}  // namespace taas::sim_data
