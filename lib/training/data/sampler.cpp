#include "taas/sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <string>

#include "taas/error.hpp"

namespace taas {
namespace {

void check(const DistributedSamplerOptions& options) {
  if (options.rank < options.num_replicas) return;
  throw InvalidArgument("rank " + std::to_string(options.rank) +
                        " of a DistributedSampler must be below num_replicas, " + std::to_string(options.num_replicas));
}

std::size_t samples_per_rank(std::size_t dataset_size, const DistributedSamplerOptions& options) {
  auto whole = dataset_size / options.num_replicas;
  bool uneven = dataset_size % options.num_replicas != 0;
  return whole + (uneven && !options.drop_last ? 1 : 0);
}

/// What Python's torch.randperm gives for a generator with this seed.
at::Tensor shuffled(std::int64_t size, std::uint64_t seed) {
  return at::randperm(size, at::detail::createCPUGenerator(seed), at::kLong);
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t dataset_size, const DistributedSamplerOptions& options)
    : options_(options), dataset_size_(dataset_size) {
  check(options);
  samples_ = samples_per_rank(dataset_size, options);
  reset();
}

at::Tensor DistributedSampler::indices() const {
  auto size = static_cast<std::int64_t>(dataset_size_);
  auto all = options_.shuffle ? shuffled(size, options_.seed + epoch_) : at::arange(size, at::kLong);
  auto total = static_cast<std::int64_t>(samples_ * options_.num_replicas);
  if (total > size) all = all.repeat({(total + size - 1) / size});  // a dataset smaller than the world goes round
  return all.slice(0, static_cast<std::int64_t>(options_.rank), total, static_cast<std::int64_t>(options_.num_replicas))
      .contiguous();
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) {
    dataset_size_ = *new_size;
    samples_ = samples_per_rank(dataset_size_, options_);
  }
  auto order = indices();
  order_.assign(order.const_data_ptr<std::int64_t>(), order.const_data_ptr<std::int64_t>() + order.numel());
  position_ = 0;
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (position_ == order_.size()) return std::nullopt;
  auto count = std::min(batch_size, order_.size() - position_);
  auto begin = order_.begin() + static_cast<std::ptrdiff_t>(position_);
  position_ += count;
  return std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", c10::IValue(static_cast<std::int64_t>(epoch_)));
  archive.write("position", c10::IValue(static_cast<std::int64_t>(position_)));
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  c10::IValue epoch, position;
  archive.read("epoch", epoch);
  archive.read("position", position);
  set_epoch(static_cast<std::uint64_t>(epoch.toInt()));
  reset();
  position_ = std::min(static_cast<std::size_t>(position.toInt()), order_.size());
}

}  // namespace taas
