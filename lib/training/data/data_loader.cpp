#include <ATen/core/Dict.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "taas/error.hpp"
#include "training/backend/environment.hpp"
#include "training/data/data_loop.hpp"
#include "training/making/data_batch.hpp"
#include "training/making/map_batches.hpp"
#include "training/making/random_state.hpp"

namespace taas {

Tensors stack(const std::vector<Tensors>& examples) {
  Tensors batch;
  if (examples.empty()) return batch;
  for (std::size_t place = 0; place < examples.front().size(); ++place) {
    std::vector<at::Tensor> column;
    for (const auto& example : examples) {
      bool alike = example.size() == examples.front().size() &&
                   example[place].sizes() == examples.front()[place].sizes() &&
                   example[place].scalar_type() == examples.front()[place].scalar_type();
      if (!alike) {
        throw InvalidArgument("examples differ (" + describe(examples.front()) + " and " + describe(example) +
                              "): give DataLoaderOptions a collate function that makes them alike");
      }
      column.push_back(example[place]);
    }
    batch.push_back(at::stack(column));
  }
  return batch;
}

DataLoader::DataLoader(std::string name, std::shared_ptr<Dataset> dataset, DataLoaderOptions options)
    : state_(std::make_shared<State>()) {
  if (name.empty()) throw InvalidArgument("a DataLoader needs a name, by which data workers find it");
  if (options.batch_size == 0) throw InvalidArgument("the batch size of the DataLoader '" + name + "' is 0");
  if (!dataset) throw InvalidArgument("the DataLoader '" + name + "' has no dataset");
  state_->maker = std::make_shared<MapBatches>(name, std::move(dataset), options.collate);
  state_->name = state_->totals.loader = std::move(name);
  state_->options = std::move(options);
}

c10::IValue DataLoader::state() const {
  const auto& epoch = state_->saved ? *state_->saved : state_->epoch;
  c10::impl::GenericDict position(c10::StringType::get(), c10::AnyType::get());
  position.insert("epoch", epoch.number);
  position.insert("batch", epoch.taken);
  position.insert("digest", static_cast<std::int64_t>(epoch.digest));
  position.insert("samples", static_cast<std::int64_t>(state_->totals.samples));
  position.insert("order", epoch.order.defined() ? c10::IValue(epoch.order.clone()) : c10::IValue());
  return position;
}

void DataLoader::resume(const c10::IValue& state) {
  try {
    auto position = state.toGenericDict();
    auto order = position.at("order");
    DataEpoch saved{.number = position.at("epoch").toInt(),
                    .taken = position.at("batch").toInt(),
                    .digest = static_cast<std::uint64_t>(position.at("digest").toInt()),
                    .order = order.isNone() ? at::Tensor() : order.toTensor().clone()};
    auto samples = position.at("samples").toInt();
    if (saved.number < 0 || saved.taken < 0 || samples < 0) throw CheckpointError("negative");
    state_->saved = saved;
    state_->totals.samples = static_cast<std::uint64_t>(samples);
  } catch (const std::exception&) {
    throw CheckpointError("this is not the state of a DataLoader ('" + state_->name +
                          "'): give resume() what state() has given");
  }
}

DataSeeds DataLoader::State::seeds(std::size_t rank, std::int64_t number) const {
  return {.initial = options.seed.value_or(default_seed()),
          .rank = rank,
          .loader = digest_of_text(name),
          .epoch = static_cast<std::uint64_t>(number)};
}

/// The order is drawn as the saved loop has drawn it; the generator is then as it was.
Batches DataLoader::batches(torch::data::samplers::Sampler<>& sampler) {
  auto& state = *state_;
  auto copies = state.options.device.is_cpu() ? nullptr : make_device_copies(state.options.device);
  if (!state.run) state.run = DataRun::of_process();
  auto saved = std::exchange(state.saved, std::nullopt);
  if (saved) state.epoch = *saved;
  if (!saved && state.begun) state.epoch = {.number = state.epoch.number + 1, .taken = 0, .digest = 0, .order = {}};
  if (state.epoch.taken == 0) state.epoch.digest = 0;
  state.begun = true;
  bool drawn_before = saved && saved->order.defined();
  auto now = default_generator_state();
  if (drawn_before) set_default_generator_state(saved->order);
  state.epoch.order = default_generator_state();
  sampler.reset(std::nullopt);
  if (drawn_before) set_default_generator_state(now);

  auto loop = std::make_unique<Batches::Loop>();
  loop->loader = state_;
  loop->rank = read_environment(process_variable).rank;
  auto seeds = state.seeds(static_cast<std::size_t>(loop->rank), state.epoch.number);
  loop->order.emplace(sampler, state.options.batch_size, state.options.drop_last, seeds);
  loop->staging = DataStaging(std::move(copies));
  loop->begin();
  return Batches(std::move(loop));
}

}  // namespace taas
