// ddp_step MODEL STEPS: the C++ half of ddp_step.py, one rank. Prints a line of JSON: seconds of wall clock and of CPU
// for each step, and the peak of the memory. Models, data and optimizer are those of ddp_step_rank.py.
#include <sys/resource.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"

namespace {

namespace F = torch::nn::functional;

constexpr int kWarmUp = 20;  // the buckets settle after the first step, and torch measures itself in the first ten
constexpr int kLayers = 4;
constexpr int kBatch = 32;

/// Linear layers of one width, with relu in between.
struct LayersImpl : torch::nn::Module {
  explicit LayersImpl(std::int64_t width) {
    for (int i = 0; i < kLayers; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(width, width)));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = at::relu(layer(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Layers);

struct ConvolutionsImpl : torch::nn::Module {
  ConvolutionsImpl() {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3)));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3)));
    output = register_module("output", torch::nn::Linear(16 * 2 * 2, 10));
  }
  at::Tensor forward(const at::Tensor& images) {
    auto x = F::max_pool2d(at::relu(first(images)), F::MaxPool2dFuncOptions(2));
    x = F::max_pool2d(at::relu(second(x)), F::MaxPool2dFuncOptions(2));
    return output(x.flatten(1));
  }
  torch::nn::Conv2d first = nullptr, second = nullptr;
  torch::nn::Linear output = nullptr;
};
TORCH_MODULE(Convolutions);

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

long peak_kibibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

template <class Holder>
void measure(Holder network, const at::Tensor& input, const taas::ProcessGroup& group, int steps) {
  taas::DistributedDataParallel model(network, group);
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const auto step = [&] {
    model.zero_grad();
    model(input).square().mean().backward();
    optimizer.step();
  };
  for (int i = 0; i < kWarmUp; ++i) step();
  taas::barrier(group);
  const double wall = wall_seconds(), cpu = cpu_seconds();
  for (int i = 0; i < steps; ++i) step();
  const double cpu_took = cpu_seconds() - cpu, wall_took = wall_seconds() - wall;
  const auto check = network->parameters().front().sum().template item<double>();
  if (group.rank() == 0) {
    std::cout << R"({"wall": )" << wall_took / steps << R"(, "cpu": )" << cpu_took / steps << R"(, "peak_kib": )"
              << peak_kibibytes() << R"(, "check": )" << check << "}\n";
  }
  taas::barrier(group);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string name = argc == 3 ? argv[1] : "";
  const int steps = argc == 3 ? std::atoi(argv[2]) : 0;
  if (steps < 1 || (name != "wide" && name != "small" && name != "convolutions")) {
    std::cerr << "usage: ddp_step wide|small|convolutions STEPS\n";
    return 2;
  }
  at::set_num_threads(1);
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  torch::manual_seed(group.rank() + 1);
  if (name == "convolutions") {
    measure(Convolutions(), at::randn({8, 1, 14, 14}), group, steps);
  } else {
    const std::int64_t width = name == "wide" ? 1024 : 64;
    measure(Layers(width), at::randn({kBatch, width}), group, steps);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
