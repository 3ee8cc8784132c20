#include "taas/sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

std::size_t samples_per_rank(std::size_t dataset_size, const DistributedSamplerOptions& options) {
  const auto whole = dataset_size / options.num_replicas;
  return options.drop_last || dataset_size % options.num_replicas == 0 ? whole : whole + 1;
}

/// What Python's torch.randperm gives for a generator with this seed.
at::Tensor shuffled(std::int64_t size, std::uint64_t seed) {
  return at::randperm(size, at::detail::createCPUGenerator(seed), at::kLong);
}

constexpr const char* kStateNames[] = {"epoch", "position", "dataset_size", "world_size",
                                       "seed",  "shuffle",  "drop_last"};

std::uint64_t number_in(const c10::impl::GenericDict& state, const char* name) {
  const auto value = state.find(name);
  if (value == state.end() || !value->value().isInt()) {
    throw CheckpointError(std::string("this is not the state of a DistributedSampler, it has no number '") + name +
                          "': give load_state() what state() has given");
  }
  return static_cast<std::uint64_t>(value->value().toInt());
}

void require_equal(const char* what, std::uint64_t saved, std::uint64_t now) {
  if (saved == now) return;
  throw CheckpointError(std::string("this state of a DistributedSampler was saved with ") + what + ' ' +
                        std::to_string(saved) + ", and now it is " + std::to_string(now) +
                        ": its order is another one; make the sampler as it was");
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t dataset_size, const DistributedSamplerOptions& options)
    : options_(options), dataset_size_(dataset_size) {
  if (options.rank >= options.num_replicas) {
    throw InvalidArgument("rank " + std::to_string(options.rank) +
                          " of a DistributedSampler must be below num_replicas, " +
                          std::to_string(options.num_replicas));
  }
  reset();
}

std::size_t DistributedSampler::size() const { return samples_per_rank(dataset_size_, options_); }

at::Tensor DistributedSampler::indices() const { return share_after(0); }

at::Tensor DistributedSampler::share_after(std::size_t taken) const {
  auto size = static_cast<std::int64_t>(dataset_size_);
  auto all = options_.shuffle ? shuffled(size, options_.seed + epoch_) : at::arange(size, at::kLong);
  auto begin = static_cast<std::int64_t>(taken);
  auto ranks = static_cast<std::int64_t>(options_.num_replicas);
  auto end = begin + static_cast<std::int64_t>(samples_per_rank(dataset_size_ - taken, options_)) * ranks;
  if (end > size) all = all.repeat({(end + size - 1) / size});  // filled up from the front, as often as it takes
  return all.slice(0, begin + static_cast<std::int64_t>(options_.rank), end, ranks).contiguous();
}

void DistributedSampler::deal(std::size_t taken) {
  auto share = share_after(taken);
  order_.assign(share.const_data_ptr<std::int64_t>(), share.const_data_ptr<std::int64_t>() + share.numel());
  order_epoch_ = epoch_;
  taken_before_ = taken;
  position_ = 0;
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) dataset_size_ = *new_size;
  deal(0);
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (position_ == order_.size()) return std::nullopt;
  auto count = std::min(batch_size, order_.size() - position_);
  auto begin = order_.begin() + static_cast<std::ptrdiff_t>(position_);
  position_ += count;
  return std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

c10::IValue DistributedSampler::state() const {
  const bool is_over = position_ == order_.size();
  const bool begins = epoch_ != order_epoch_ && (is_over || taken_before_ + position_ == 0);
  const auto taken = is_over ? dataset_size_ : taken_before_ + position_ * options_.num_replicas;
  const std::uint64_t values[] = {begins ? epoch_ : order_epoch_,
                                  begins ? 0 : taken,
                                  dataset_size_,
                                  options_.num_replicas,
                                  options_.seed,
                                  options_.shuffle,
                                  options_.drop_last};
  auto state = plain_dict();
  for (std::size_t i = 0; i < std::size(values); ++i) {
    state.insert(kStateNames[i], static_cast<std::int64_t>(values[i]));
  }
  return state;
}

void DistributedSampler::load_state(const c10::IValue& state) {
  const auto fields = state.isGenericDict() ? state.toGenericDict() : plain_dict();
  for (const auto* name : kStateNames) number_in(fields, name);
  require_equal("dataset_size", number_in(fields, "dataset_size"), dataset_size_);
  require_equal("shuffle", number_in(fields, "shuffle"), options_.shuffle);
  if (options_.shuffle) require_equal("seed", number_in(fields, "seed"), options_.seed);
  require_equal("drop_last", number_in(fields, "drop_last"), options_.drop_last);
  const auto taken = number_in(fields, "position");
  if (taken > dataset_size_) {
    throw CheckpointError("position " + std::to_string(static_cast<std::int64_t>(taken)) +
                          " in the state of a DistributedSampler is outside of its dataset of " +
                          std::to_string(dataset_size_) + " examples: the state is damaged");
  }
  set_epoch(number_in(fields, "epoch"));
  deal(taken);
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& field : state().toGenericDict()) archive.write(field.key().toStringRef(), field.value());
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  auto state = plain_dict();
  for (const auto* name : kStateNames) {
    c10::IValue value;
    if (archive.try_read(name, value)) state.insert(name, value);
  }
  load_state(state);
}

}  // namespace taas
