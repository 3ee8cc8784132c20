// DataParallel cuts each batch: every replica prints the sizes that it sees, and the loop prints those of the whole.
//
//     data_parallel_sizes        # on all GPUs; with fewer than two, on the CPU as if it were three devices
#include <torch/nn/modules/linear.h>

#include <iostream>
#include <string>
#include <taas/data.hpp>
#include <taas/data_parallel.hpp>
#include <taas/error.hpp>
#include <taas/sampler.hpp>

namespace {

constexpr std::int64_t kSamples = 44, kBatchSize = 16, kInputs = 6, kOutputs = 3;

struct Samples : taas::Dataset {
  std::size_t size() const override { return static_cast<std::size_t>(kSamples); }
  taas::Tensors get(std::size_t index) override { return {rows[static_cast<std::int64_t>(index)]}; }
  at::Tensor rows = at::randn({kSamples, kInputs});
};

/// The sizes of a matrix, as Python writes a tuple.
std::string sizes_of(const at::Tensor& matrix) {
  return "(" + std::to_string(matrix.size(0)) + ", " + std::to_string(matrix.size(1)) + ")";
}

void tell(const std::string& where, const at::Tensor& input, const at::Tensor& output) {
  // One write for the whole line: replicas write at the same time.
  std::cout << where + ": input " + sizes_of(input) + ", output " + sizes_of(output) + "\n" << std::flush;
}

/// A layer that prints what it was given and what it returns.
struct TellingModelImpl : torch::nn::Cloneable<TellingModelImpl> {
  TellingModelImpl() { reset(); }
  void reset() override { layer = register_module("layer", torch::nn::Linear(kInputs, kOutputs)); }
  at::Tensor forward(const at::Tensor& input) {
    auto output = layer(input);
    tell("  inside the model", input, output);
    return output;
  }
  torch::nn::Linear layer = nullptr;
};
TORCH_MODULE(TellingModel);

}  // namespace

int main() try {
  auto devices = taas::visible_devices();
  if (devices.size() > 1) {
    std::cout << devices.size() << " GPUs: each batch is split over them" << std::endl;
  } else {
    std::cout << "no two GPUs: each batch is split as for three devices, on the CPU" << std::endl;
    devices.assign(3, c10::kCPU);
  }
  TellingModel module;
  module->to(devices.front());
  taas::DataParallel model(module, devices);

  taas::DataLoader loader("samples", std::make_shared<Samples>(), {.batch_size = kBatchSize});
  taas::DistributedSampler sampler(static_cast<std::size_t>(kSamples), {});  // one rank, shuffled
  for (auto& batch : loader.batches(sampler)) {
    auto input = batch[0].to(devices.front());
    auto output = model(input);
    tell("outside", input, output);
  }
} catch (const taas::Exception& error) {
  std::cerr << "data_parallel_sizes: " << error.what() << '\n';
  return 1;
}
