#include <utility>

#include "taas/error.hpp"
#include "training/backend/environment.hpp"
#include "training/data/data_loop.hpp"
#include "training/data/sampled_order.hpp"
#include "training/making/map_batches.hpp"
#include "training/making/random_state.hpp"
#include "training/making/stream_batches.hpp"

namespace taas {
namespace {

void check(const std::string& name, bool has_dataset, const DataLoaderOptions& options) {
  if (name.empty()) throw InvalidArgument("a DataLoader needs a name, by which data workers find it");
  if (options.batch_size == 0) throw InvalidArgument("the batch size of the DataLoader '" + name + "' is 0");
  if (!has_dataset) throw InvalidArgument("the DataLoader '" + name + "' has no dataset");
}

/// Its order is to come.
std::unique_ptr<Batches::Loop> new_loop(const std::shared_ptr<DataLoader::State>& loader) {
  auto loop = std::make_unique<Batches::Loop>();
  const auto& device = loader->options.device;
  if (!device.is_cpu()) loop->staging = DataStaging(make_device_copies(device));
  if (!loader->run) loader->run = DataRun::of_process();
  const auto environment = read_environment(process_variable);
  loop->place = {static_cast<std::size_t>(environment.rank), static_cast<std::size_t>(environment.world_size)};
  loader->begin_epoch();
  return loop;
}

std::string describe(std::uint64_t rank, std::uint64_t world_size) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(world_size);
}

void check_rank(const std::string& name, const StreamPosition& saved, RankPlace place) {
  if (saved.rank == place.rank && saved.world_size == place.world_size) return;
  throw CheckpointError("this state of '" + name + "' is of " + describe(saved.rank, saved.world_size) +
                        ", whose part of the stream is not that of " + describe(place.rank, place.world_size) +
                        ": give each rank its own state, or one of the end of a loop");
}

}  // namespace

DataLoader::DataLoader(std::string name, std::shared_ptr<Dataset> dataset, DataLoaderOptions options)
    : state_(std::make_shared<State>()) {
  check(name, dataset != nullptr, options);
  state_->maker = std::make_shared<MapBatches>(name, std::move(dataset), options.collate);
  state_->name = state_->totals.loader = std::move(name);
  state_->options = std::move(options);
}

DataLoader::DataLoader(std::string name, std::shared_ptr<IterableDataset> dataset, DataLoaderOptions options)
    : state_(std::make_shared<State>()) {
  check(name, dataset != nullptr, options);
  if (options.num_workers == 0)
    throw InvalidArgument("num_workers of the DataLoader '" + name + "' is 0: nobody would read its shards");
  StreamRecipe recipe{name, std::move(dataset), options.collate, options.batch_size, options.drop_last};
  state_->maker = std::make_shared<StreamBatches>(std::move(recipe), options.num_workers);
  state_->name = state_->totals.loader = std::move(name);
  state_->num_workers = options.num_workers;
  state_->options = std::move(options);
}

/// The order is drawn as the saved loop has drawn it; the generator is then as it was.
Batches DataLoader::batches(torch::data::samplers::Sampler<>& sampler) {
  auto& state = *state_;
  if (state.num_workers > 0) {
    throw InvalidArgument("the dataset of '" + state.name +
                          "' has no indices for a sampler: call batches() without one");
  }
  auto loop = new_loop(state_);
  bool drawn_before = state.epoch.order.defined();
  auto now = default_generator_state();
  if (drawn_before) set_default_generator_state(state.epoch.order);
  state.epoch.order = default_generator_state();
  sampler.reset(std::nullopt);
  if (drawn_before) set_default_generator_state(now);
  auto seeds = state.seeds(loop->place.rank, state.epoch.number);
  auto order = std::make_unique<SampledOrder>(sampler, state.options.batch_size, state.options.drop_last, seeds);
  order->skip(state.epoch.taken);
  loop->order = std::move(order);
  loop->begin(state_);
  return Batches(std::move(loop));
}

Batches DataLoader::batches() {
  auto& state = *state_;
  if (state.num_workers == 0) {
    throw InvalidArgument("the dataset of '" + state.name +
                          "' has indices: call batches() with a sampler that draws them");
  }
  auto loop = new_loop(state_);
  auto& position = state.epoch.stream;
  if (!position) position = state.stream_start(loop->place);
  check_rank(state.name, *position, loop->place);
  loop->order = state.stream_order(state.epoch, loop->place);
  loop->begin(state_);
  return Batches(std::move(loop));
}

}  // namespace taas
