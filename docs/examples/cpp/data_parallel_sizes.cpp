// How a batch is cut over the devices of one process: each replica and the loop around it say what sizes they see.
// Quickstart has built it, and taas-run finds it by its name. Elsewhere CMakeLists.txt beside it says how.
// To train, use a process for each device (taas::DistributedDataParallel).
//
//     taas-run data_parallel_sizes        # on all GPUs; with fewer than two, on the CPU as if it were four devices
#include <torch/cuda.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <future>
#include <iostream>
#include <sstream>
#include <taas/data.hpp>
#include <taas/error.hpp>
#include <taas/sampler.hpp>
#include <vector>

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

std::vector<c10::Device> visible_devices() {
  std::vector<c10::Device> devices;
  for (c10::DeviceIndex i = 0; i < torch::cuda::device_count(); ++i) devices.emplace_back(c10::kCUDA, i);
  return devices;
}

/// A part of the batch for each device, cut as torch.chunk cuts it, through a copy of the model there; the outputs are
/// joined on the first device.
at::Tensor over_devices(const Model& model, const at::Tensor& input, const std::vector<c10::Device>& devices) {
  std::vector<std::future<at::Tensor>> parts;
  for (const auto& part : input.chunk(static_cast<std::int64_t>(devices.size()))) {
    parts.push_back(std::async(std::launch::async, [&model, part, device = devices[parts.size()]] {
      const auto replica = std::dynamic_pointer_cast<ModelImpl>(model->clone(device));
      return replica->forward(part.to(device));
    }));
  }
  std::vector<at::Tensor> outputs;
  for (auto& part : parts) outputs.push_back(part.get().to(devices.front()));
  return at::cat(outputs);
}

}  // namespace

int main() try {
  auto devices = visible_devices();
  if (devices.size() > 1) {
    std::cout << "Let's use " << devices.size() << " GPUs!" << std::endl;
  } else {
    devices.assign(4, c10::kCPU);
  }
  Model model;
  model->to(devices.front());

  taas::DataLoader loader("random", std::make_shared<RandomDataset>(), {.batch_size = kBatchSize});
  taas::DistributedSampler sampler(static_cast<std::size_t>(kDataSize), {});  // one rank, shuffled
  for (auto& batch : loader.batches(sampler)) {
    auto input = batch[0].to(devices.front());
    auto output = over_devices(model, input, devices);
    std::cout << "Outside: input size " + text_of(input.sizes()) + " output_size " + text_of(output.sizes())
              << std::endl;
  }
} catch (const taas::Exception& error) {
  std::cerr << "data_parallel_sizes: " << error.what() << '\n';
  return 1;
}
