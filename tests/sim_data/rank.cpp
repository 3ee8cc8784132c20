#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "world.hpp"

namespace taas::sim_data {

void World::start_rank() {
  say("the rank starts");
  ++life_;
  ++alarm_;
  referee_ = std::make_unique<Referee>(settings_.policy, [this](const std::string& what) { require(false, what); });
  feed(CreditsChanged{settings_.credits, agenda_.now()});
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers_.size()); ++index) connect(index);
  for (int loader = 0; loader < static_cast<int>(loaders_.size()); ++loader) {
    if (!loaders_[static_cast<std::size_t>(loader)].done) open(loader);
  }
}

/// All that it has taken after its last checkpoint is forgotten with it.
void World::kill_rank() {
  if (!referee_) return;
  say("the rank is killed");
  outcome_.copies += referee_->copies();
  outcome_.beyond_credits += referee_->beyond_credits();
  referee_.reset();
  ++life_;
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers_.size()); ++index) lose(index);
  loader_of_.clear();
  for (auto& loader : loaders_) {
    outcome_.replayed += static_cast<int>(loader.delivered.size() - loader.saved);
    loader.delivered.resize(loader.saved);
    loader.epoch = loader.saved_epoch;
    loader.position = loader.saved_position;
    loader.done = loader.epoch >= loader.settings.epochs;
  }
  Duration away = random_.up_to(std::chrono::seconds(5));
  trouble_ += away;
  agenda_.after(away, [this] { start_rank(); });
}

void World::open(int number) {
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  loader.stream = ++last_stream_;
  loader_of_[loader.stream] = number;
  loader.origin = loader.submitted = loader.position;
  loader.buffer.clear();
  loader.waits = false;
  submit(number);
  Duration pause = loader.epoch == 0 ? loader.settings.begins : Duration(0);
  agenda_.after(pause, [this, number, life = life_] {
    if (life == life_) step(number);
  });
}

/// As far ahead as the loader draws.
void World::submit(int number) {
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  const auto& settings = loader.settings;
  auto limit = std::min<std::uint64_t>(settings.batches, loader.position + static_cast<std::uint64_t>(settings.ahead));
  while (loader.submitted < limit) {
    auto batch = loader.submitted++;
    WorkerIndex preferred = -1;
    auto workers = static_cast<std::uint64_t>(settings_.slowness.size());
    if (settings.shards > 0) {
      preferred = static_cast<WorkerIndex>(batch % static_cast<std::uint64_t>(settings.shards) % workers);
    } else if (settings.prepared) {
      preferred = static_cast<WorkerIndex>(content(number, loader.epoch, batch) % workers);
    }
    feed(Submitted{{loader.stream, batch - loader.origin}, preferred, settings.shards > 0, agenda_.now()});
  }
}

void World::step(int number) {
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  if (loader.position >= static_cast<std::uint64_t>(loader.settings.taken)) return end_epoch(number);
  if (loader.buffer.contains(loader.position - loader.origin)) return take(number);
  loader.waits = true;
  loader.waits_since = agenda_.now();
}

void World::take(int number) {
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  Task task{loader.stream, loader.position - loader.origin};
  if (std::exchange(loader.waits, false)) {
    outcome_.longest_wait = std::max(outcome_.longest_wait, agenda_.now() - loader.waits_since);
  }
  loader.delivered.push_back(loader.buffer.extract(task.number).mapped());
  ++loader.position;
  if (++taken_ % settings_.checkpoint_every == 0) checkpoint();
  feed(Taken{task, agenda_.now()});
  submit(number);
  agenda_.after(loader.settings.step, [this, number, life = life_] {
    if (life == life_) step(number);
  });
}

void World::checkpoint() {
  for (auto& loader : loaders_) {
    loader.saved = loader.delivered.size();
    loader.saved_epoch = loader.epoch;
    loader.saved_position = loader.position;
  }
}

void World::end_epoch(int number) {
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  say(fmt::format("stream {} ends", loader.stream));
  feed(StreamClosed{loader.stream, agenda_.now()});
  loader_of_.erase(loader.stream);
  loader.position = 0;
  loader.done = ++loader.epoch >= loader.settings.epochs;
  if (!loader.done) open(number);
}

void World::keep(const Task& task, std::uint64_t content) {
  int number = loader_of_.at(task.stream);
  auto& loader = loaders_[static_cast<std::size_t>(number)];
  require(loader.buffer.emplace(task.number, content).second, "a batch is kept twice");
  if (!loader.waits) return;
  agenda_.after(Duration(0), [this, number, life = life_, stream = task.stream] {
    auto& waiting = loaders_[static_cast<std::size_t>(number)];
    bool ready = life == life_ && waiting.waits && waiting.stream == stream;
    if (ready && waiting.buffer.contains(waiting.position - waiting.origin)) take(number);
  });
}

Order World::order(const Assign& assign) {
  int number = loader_of_.at(assign.task.stream);
  const auto& loader = loaders_[static_cast<std::size_t>(number)];
  Order made{assign.attempt, assign.task, number, loader.epoch, loader.origin + assign.task.number};
  made.cost = loader.settings.cost;
  bool slow = content(number, loader.epoch, made.batch) % 10007 % 100 <
              static_cast<std::uint64_t>(loader.settings.slow_percent);
  if (slow) made.cost *= loader.settings.slow_factor;
  made.shards = loader.settings.shards;
  if (made.shards > 0) made.shard = static_cast<int>(made.batch % static_cast<std::uint64_t>(made.shards));
  return made;
}

/// What an undisturbed loop sees. What was given up is not known before.
std::vector<std::uint64_t> World::expected(int number) const {
  const auto& loader = loaders_[static_cast<std::size_t>(number)];
  std::vector<std::uint64_t> all;
  for (int epoch = 0; epoch < loader.settings.epochs; ++epoch) {
    for (int batch = 0; batch < loader.settings.taken; ++batch) {
      bool lost = all.size() < loader.delivered.size() && loader.delivered[all.size()] == 0;
      all.push_back(lost ? 0 : content(number, epoch, static_cast<std::uint64_t>(batch)));
    }
  }
  return all;
}

bool World::all_done() const {
  return std::all_of(loaders_.begin(), loaders_.end(), [](const auto& loader) { return loader.done; });
}

}  // namespace taas::sim_data
