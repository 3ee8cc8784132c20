// How DataParallel cuts batches: each replica and the loop around it say what sizes they see.
//
//     data_parallel_sizes        # on all GPUs; with fewer than two, on the CPU as if it were four devices
#include <torch/nn/modules/linear.h>

#include <iostream>
#include <sstream>
#include <taas/data.hpp>
#include <taas/data_parallel.hpp>
#include <taas/error.hpp>
#include <taas/sampler.hpp>

namespace {

constexpr std::int64_t kInputSize = 5, kOutputSize = 2, kBatchSize = 30, kDataSize = 100;

struct RandomDataset : taas::Dataset {
  std::size_t size() const override { return static_cast<std::size_t>(kDataSize); }
  taas::Tensors get(std::size_t index) override { return {data[static_cast<std::int64_t>(index)]}; }
  at::Tensor data = at::randn({kDataSize, kInputSize});
};

/// As Python writes it.
std::string text_of(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << "torch.Size(" << sizes << ")";
  return text.str();
}

struct ModelImpl : torch::nn::Cloneable<ModelImpl> {
  ModelImpl() { reset(); }
  void reset() override { fc = register_module("fc", torch::nn::Linear(kInputSize, kOutputSize)); }
  at::Tensor forward(const at::Tensor& input) {
    auto output = fc(input);
    // One write for the whole line: replicas write at the same time.
    std::cout << "\tIn Model: input size " + text_of(input.sizes()) + " output size " + text_of(output.sizes()) + "\n"
              << std::flush;
    return output;
  }
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(Model);

}  // namespace

int main() try {
  auto devices = taas::visible_devices();
  if (devices.size() > 1) {
    std::cout << "Let's use " << devices.size() << " GPUs!" << std::endl;
  } else {
    devices.assign(4, c10::kCPU);
  }
  Model module;
  module->to(devices.front());
  taas::DataParallel model(module, devices);

  taas::DataLoader loader("random", std::make_shared<RandomDataset>(), {.batch_size = kBatchSize});
  taas::DistributedSampler sampler(static_cast<std::size_t>(kDataSize), {});  // one rank, shuffled
  for (auto& batch : loader.batches(sampler)) {
    auto input = batch[0].to(devices.front());
    auto output = model(input);
    std::cout << "Outside: input size " + text_of(input.sizes()) + " output_size " + text_of(output.sizes())
              << std::endl;
  }
} catch (const taas::Exception& error) {
  std::cerr << "data_parallel_sizes: " << error.what() << '\n';
  return 1;
}
