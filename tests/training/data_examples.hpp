#pragma once

#include <ATen/Functions.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "stream_examples.hpp"
#include "taas/data.hpp"
#include "taas/sampler.hpp"

namespace taas::test {

/// Examples with something drawn at random: an image, a label, and a number of another kind.
class Noisy : public Dataset {
 public:
  explicit Noisy(std::size_t size) : size_(size) {}
  [[nodiscard]] std::size_t size() const override { return size_; }
  Tensors get(std::size_t index) override {
    auto number = static_cast<std::int64_t>(index);
    return {at::full({3, 5, 7}, static_cast<double>(index)) + at::rand({3, 5, 7}), at::full({}, number, at::kLong),
            at::randn({2}, at::kDouble), at::full({3}, index % 2 == 0, at::kBool)};
  }

 private:
  std::size_t size_;
};

/// Notes each example that is read: see note_get().
class Counted : public Noisy {
 public:
  using Noisy::Noisy;
  Tensors get(std::size_t index) override {
    note_get();
    return Noisy::get(index);
  }
};

/// One of its examples cannot be read.
class Faulty : public Noisy {
 public:
  using Noisy::Noisy;
  Tensors get(std::size_t index) override {
    if (index == 10) throw std::runtime_error("pixel 7 is missing");
    return Noisy::get(index);
  }
};

/// Pairs of examples one behind the other, and how many there were.
inline Tensors join(const std::vector<Tensors>& examples) {
  std::vector<at::Tensor> images;
  for (const auto& example : examples) images.push_back(example[0]);
  auto noise = at::rand({4});
  return {at::cat(images, 2), noise, at::full({1}, static_cast<std::int64_t>(examples.size()), at::kLong),
          at::empty({0, 4})};
}

/// The loaders that the rank and its data workers have.
struct Loaders {
  DataLoader noisy{"noisy", std::make_shared<Noisy>(103), {.batch_size = 4, .seed = 7}};
  DataLoader joined{"joined", std::make_shared<Noisy>(50), {.batch_size = 8, .drop_last = true, .collate = join}};
  DataLoader faulty{"faulty", std::make_shared<Faulty>(20), {.batch_size = 4}};
  DataLoader counted{"counted", std::make_shared<Counted>(50), {.batch_size = 4, .seed = 7}};

  DataLoader lines{"lines", std::make_shared<Lines>(103), {.batch_size = 4, .num_workers = 2, .seed = 7}};
  DataLoader one_shard{"one shard", std::make_shared<Lines>(50), {.batch_size = 3}};
  DataLoader whole{"whole", std::make_shared<Lines>(50), {.batch_size = 4, .drop_last = true, .num_workers = 3}};
  DataLoader cut_off{"cut off", std::make_shared<Lines>(20, 10), {.batch_size = 2}};
  DataLoader fickle{"fickle", std::make_shared<Fickle>(), {.batch_size = 2}};
  DataLoader shrinking{"shrinking", std::make_shared<Shrinking>(), {.batch_size = 2}};

  [[nodiscard]] std::vector<ServedLoader> served() const;
};

/// The first loop's over "counted".
inline std::shared_ptr<torch::data::samplers::Sampler<>> sampler_of_rank(std::size_t rank, std::size_t world_size) {
  return std::make_shared<DistributedSampler>(
      50, DistributedSamplerOptions{.num_replicas = world_size, .rank = rank, .seed = 3});
}

inline std::vector<ServedLoader> Loaders::served() const {
  return {noisy, joined, faulty, {counted, sampler_of_rank}, lines, one_shard, whole, cut_off, fickle, shrinking};
}

}  // namespace taas::test
