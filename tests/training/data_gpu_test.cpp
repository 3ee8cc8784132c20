// Batches into a real GPU: pinned where they lie, and on the device, with the bytes that they have on the CPU. Without
// a GPU: 77, which means skipped.
#include <ATen/Functions.h>
#include <torch/data/samplers/sequential.h>

#include <iostream>
#include <optional>

#include "data_examples.hpp"
#include "data_workers.hpp"
#include "training/backend/nccl.hpp"

namespace {

using namespace taas;
using namespace taas::test;

std::vector<Tensors> epoch_of(DataLoaderOptions options, bool asks_for_pinned = false) {
  options.batch_size = 4;
  options.seed = 7;
  DataLoader loader("noisy", std::make_shared<Noisy>(103), options);
  torch::data::samplers::SequentialSampler sampler(103);
  std::vector<Tensors> all;
  for (auto& batch : loader.batches(sampler)) {
    if (asks_for_pinned && !batch[0].is_pinned()) throw std::runtime_error("a batch is not pinned");
    all.push_back({});
    for (const auto& tensor : batch) all.back().push_back(tensor.to(at::kCPU, tensor.scalar_type()).clone());
  }
  return all;
}

/// Copies that are not waited for, of batches that are let go at once.
std::vector<Tensors> late_copies() {
  DataLoader loader("noisy", std::make_shared<Noisy>(103), {.batch_size = 4, .seed = 7, .pin_memory = true});
  torch::data::samplers::SequentialSampler sampler(103);
  std::vector<Tensors> all;
  auto busy = at::rand({4096, 4096}, at::kCUDA);
  for (auto& batch : loader.batches(sampler)) {
    for (int i = 0; i < 3; ++i) busy = at::mm(busy, busy).clamp(-1, 1);
    all.push_back({});
    for (const auto& tensor : batch) all.back().push_back(tensor.to(at::kCUDA, tensor.scalar_type(), true));
  }
  for (auto& batch : all) {
    for (auto& tensor : batch) tensor = tensor.to(at::kCPU, tensor.scalar_type());
  }
  return all;
}

bool are_equal(const std::vector<Tensors>& one, const std::vector<Tensors>& other) {
  if (one.size() != other.size()) return false;
  for (std::size_t batch = 0; batch < one.size(); ++batch) {
    for (std::size_t i = 0; i < one[batch].size(); ++i) {
      if (!at::equal(one[batch][i], other[batch][i])) return false;
    }
  }
  return true;
}

int check(const char* what, bool good) {
  std::cout << (good ? "ok: " : "FAILED: ") << what << std::endl;
  return good ? 0 : 1;
}

}  // namespace

int main() {
  if (cuda_device_count() == 0) {
    std::cout << "skipped: no NVIDIA GPU that this build can use\n";
    return 77;
  }
  const auto expected = epoch_of({});
  static_cast<void>(at::zeros({1}, at::kCUDA));  // the program uses the GPU from now on
  int failures = 0;
  for (const int count : {0, 2}) {
    std::optional<DataWorkers> workers;
    if (count > 0) workers.emplace(count);
    std::cout << count << " data workers\n";
    failures += check("pinned", are_equal(epoch_of({.pin_memory = true}, true), expected));
    failures += check("copies that are not waited for", are_equal(late_copies(), expected));
    failures += check("on the device", are_equal(epoch_of({.device = at::kCUDA}), expected));
  }
  return failures == 0 ? 0 : 1;
}
