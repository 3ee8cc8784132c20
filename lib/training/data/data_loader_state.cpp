#include "training/data/data_loader_state.hpp"

#include <ATen/core/Dict.h>

#include <utility>

#include "taas/error.hpp"
#include "training/data/data_loop.hpp"
#include "training/making/random_state.hpp"

namespace taas {
namespace {

constexpr const char* kStream = "stream";

/// Throws std::exception for something else than to_value() gives.
DataEpoch epoch_in(const c10::impl::GenericDict& position) {
  auto order = position.at("order");
  DataEpoch epoch{.number = position.at("epoch").toInt(),
                  .taken = position.at("batch").toInt(),
                  .digest = static_cast<std::uint64_t>(position.at("digest").toInt()),
                  .order = order.isNone() ? at::Tensor() : order.toTensor().clone()};
  if (epoch.number < 0 || epoch.taken < 0) throw std::invalid_argument("negative");
  if (position.contains(kStream)) epoch.stream = stream_position(position.at(kStream));
  return epoch;
}

}  // namespace

c10::IValue DataLoader::state() const {
  const auto& epoch = state_->saved ? *state_->saved : state_->epoch;
  c10::impl::GenericDict position(c10::StringType::get(), c10::AnyType::get());
  position.insert("epoch", epoch.number);
  position.insert("batch", epoch.taken);
  position.insert("digest", static_cast<std::int64_t>(epoch.digest));
  position.insert("samples", static_cast<std::int64_t>(state_->totals.samples));
  position.insert("order", epoch.order.defined() ? c10::IValue(epoch.order.clone()) : c10::IValue());
  if (epoch.stream) position.insert(kStream, to_value(*epoch.stream));
  return position;
}

void DataLoader::resume(const c10::IValue& state) {
  try {
    auto position = state.toGenericDict();
    auto saved = epoch_in(position);
    auto samples = position.at("samples").toInt();
    bool is_stream = state_->num_workers > 0;
    bool fits = saved.stream ? is_stream : !is_stream || saved.taken == 0;
    if (samples < 0 || !fits) throw std::invalid_argument("of another loader");
    if (saved.stream) state_->check_workers(saved.stream->chains.size());
    state_->saved = std::move(saved);
    state_->totals.samples = static_cast<std::uint64_t>(samples);
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception&) {
    throw CheckpointError("this is not the state of a DataLoader ('" + state_->name +
                          "'): give resume() what state() has given");
  }
}

void DataLoader::State::begin_epoch() {
  if (saved) {
    epoch = std::move(*saved);
    saved.reset();
  } else if (begun) {
    epoch = {.number = epoch.number + 1, .taken = 0, .digest = 0, .order = {}};
  }
  if (epoch.taken == 0) epoch.digest = 0;
  begun = true;
}

void DataLoader::State::check_workers(std::size_t shards) const {
  if (shards == num_workers) return;
  throw CheckpointError("this state of '" + name + "' was saved with num_workers " + std::to_string(shards) +
                        ", and now it is " + std::to_string(num_workers) +
                        ", which makes other shards: load it with the same, or load one of the end of a loop");
}

DataSeeds DataLoader::State::seeds(std::size_t rank, std::int64_t number) const {
  return {.initial = options.seed.value_or(default_seed()),
          .rank = rank,
          .loader = digest_of_text(name),
          .epoch = static_cast<std::uint64_t>(number)};
}

StreamPosition DataLoader::State::stream_start(RankPlace place) const {
  StreamPosition start{.rank = place.rank, .world_size = place.world_size, .next = {}, .ended = {}, .chains = {}};
  start.chains.assign(num_workers, 0);
  return start;
}

std::unique_ptr<ShardOrder> DataLoader::State::stream_order(const DataEpoch& of, RankPlace place) const {
  const StreamTask any{
      .seeds = seeds(place.rank, of.number), .world_size = place.world_size, .num_workers = num_workers};
  return std::make_unique<ShardOrder>(any, of.stream ? *of.stream : stream_start(place));
}

}  // namespace taas
