#include "training/serving/data_preparation.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "taas/error.hpp"
#include "training/data/data_events.hpp"
#include "training/data/predicted_order.hpp"

namespace taas {
namespace {

using namespace std::chrono_literals;

std::string names_of(const std::vector<KnownLoader>& loaders) {
  std::string names;
  for (const auto& known : loaders) names += (names.empty() ? "'" : ", '") + known.state->name + "'";
  return names.empty() ? "none" : names;
}

const KnownLoader& loader_called(const std::string& name, const std::vector<KnownLoader>& loaders) {
  auto found = std::find_if(loaders.begin(), loaders.end(),
                            [&name](const KnownLoader& known) { return known.state->name == name; });
  if (found == loaders.end())
    throw ConfigError("no loader is called '" + name + "': serve_data was given " + names_of(loaders));
  return *found;
}

/// Of a dataset with indices, as its sampler will draw them.
std::unique_ptr<BatchOrder> sampled_order(const KnownLoader& known, RankPlace place) {
  const auto& loader = *known.state;
  if (!known.sampler) {
    throw ConfigError(
        "'" + loader.name +
        "' cannot be prepared, since nobody knows its order: serve_data({{loader, sampler_of_rank}}) says "
        "which sampler the first loop will have");
  }
  auto sampler = known.sampler(place.rank, place.world_size);
  if (!sampler)
    throw ConfigError("the sampler of '" + loader.name + "' for rank " + std::to_string(place.rank) + " is null");
  return std::make_unique<PredictedOrder>(loader, std::move(sampler), place.rank);
}

/// What this worker is the home of.
std::unique_ptr<BatchOrder> shard_order(const DataLoader::State& loader, RankPlace rank, WorkerPlace worker) {
  auto order = loader.stream_order(loader.saved ? *loader.saved : loader.epoch, rank);
  order->keep_homes(worker.worker, worker.workers);
  return order;
}

std::deque<std::unique_ptr<BatchOrder>> orders_of(const KnownLoader& known, std::size_t world_size,
                                                  WorkerPlace worker) {
  std::deque<std::unique_ptr<BatchOrder>> orders;
  for (std::size_t rank = 0; rank < world_size; ++rank) {
    const RankPlace place{rank, world_size};
    bool is_stream = known.state->num_workers > 0;
    orders.push_back(is_stream ? shard_order(*known.state, place, worker) : sampled_order(known, place));
  }
  return orders;
}

/// A worker's part of what all ranks hold, and of half of this machine's free memory: all workers may be here.
std::size_t memory_of_worker(const DataPlan& plan) {
  auto workers = std::max<std::size_t>(1, plan.workers.size());
  auto free = static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_AVPHYS_PAGES))) *
              static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return std::min(plan.buffer_bytes * static_cast<std::size_t>(plan.world_size), free / 2) / workers;
}

}  // namespace

DataPreparation::DataPreparation(const DataPlan& plan, const std::vector<KnownLoader>& loaders, std::size_t worker)
    : place_{worker, std::max<std::size_t>(1, plan.workers.size())} {
  const auto memory = memory_of_worker(plan) / std::max<std::size_t>(1, plan.loaders.size());
  for (const auto& name : plan.loaders) {
    const auto& known = loader_called(name, loaders);
    const auto& maker = known.state->maker;
    auto orders = orders_of(known, static_cast<std::size_t>(plan.world_size), place_);
    auto& own = loaders_[maker->description()];
    own = std::make_unique<LoaderPreparation>(name, maker, std::move(orders), place_, memory);
    turns_.push_back(own.get());
  }
}

void DataPreparation::step() {
  auto* loader = turns_.front();
  turns_.pop_front();
  loader->step();
  if (!loader->is_done()) turns_.push_back(loader);
}

std::optional<MadeBatch> DataPreparation::take(const std::string& loader, const std::string& task) {
  auto found = loaders_.find(loader);
  return found == loaders_.end() ? std::nullopt : found->second->take(task);
}

void DataPreparation::tend() {
  for (const auto& [description, loader] : loaders_) {
    if (auto remark = loader->take_remark()) remark_on_data(*remark);
  }
  auto now = steady_now();
  bool is_end = is_done() && !end_was_tried_;
  if (end_is_told_ || (!is_end && now - reported_ < 500ms)) return;
  reported_ = now;
  end_was_tried_ = is_done();
  end_is_told_ = report() && is_done();
}

bool DataPreparation::report() {
  DataPrepared prepared{.worker = static_cast<int>(place_.worker), .done = is_done()};
  for (const auto& [description, loader] : loaders_) {
    prepared.batches += loader->batches().count();
    prepared.bytes += loader->batches().bytes();
  }
  return report_prepared(prepared);
}

}  // namespace taas
