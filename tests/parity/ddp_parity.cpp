// ddp_parity DIR: the C++ half of ddp_parity.py.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <istream>
#include <map>
#include <string>

#include "parity_program.hpp"
#include "taas/distributed_data_parallel.hpp"

namespace {

namespace F = torch::nn::functional;
using Options = taas::DistributedDataParallelOptions;

constexpr int kSide = 8;
constexpr int kClasses = 10;

enum class Branch { kAbsent, kSometimes, kNever };

struct Case {
  Options options = {};
  Branch branch = Branch::kAbsent;
  int accumulate = 1;  ///< steps between two synchronisations
};

/// The table of ddp_parity.py.
const std::map<std::string, Case>& all_cases() {
  static const std::map<std::string, Case> kCases{
      {"default", {}},
      {"many_buckets", {.options = {.bucket_cap_mb = 0.001}}},
      {"bucket_view", {.options = {.gradient_as_bucket_view = true}}},
      {"bucket_view_many_buckets", {.options = {.bucket_cap_mb = 0.001, .gradient_as_bucket_view = true}}},
      {"no_sync", {.accumulate = 2}},
      {"no_sync_bucket_view", {.options = {.gradient_as_bucket_view = true}, .accumulate = 3}},
      {"find_unused", {.options = {.find_unused_parameters = true}, .branch = Branch::kSometimes}},
      {"find_unused_many_buckets",
       {.options = {.bucket_cap_mb = 0.001, .find_unused_parameters = true}, .branch = Branch::kSometimes}},
      {"static_graph", {.options = {.static_graph = true}}},
      {"static_graph_unused", {.options = {.bucket_cap_mb = 0.001, .static_graph = true}, .branch = Branch::kNever}},
      {"own_buffers", {.options = {.broadcast_buffers = false}}},
  };
  return kCases;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(Branch branch) {
    conv = register_module("conv", torch::nn::Conv2d(1, 4, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    hidden = register_module("hidden", torch::nn::Linear(4 * 6 * 6, 32));
    output = register_module("output", torch::nn::Linear(32, kClasses));
    if (branch != Branch::kAbsent) extra = register_module("extra", torch::nn::Linear(32, kClasses));
  }

  at::Tensor forward(const at::Tensor& images, bool with_extra) {
    auto x = at::relu(norm(conv(images))).flatten(1);
    x = at::relu(hidden(x));
    auto y = output(x);
    return with_extra ? y + extra(x) : y;
  }

  torch::nn::Conv2d conv = nullptr;
  torch::nn::BatchNorm2d norm = nullptr;
  torch::nn::Linear hidden = nullptr, output = nullptr, extra = nullptr;
};
TORCH_MODULE(Net);

at::Tensor images(const at::Tensor& batch) {
  return batch.slice(1, 0, kSide * kSide).contiguous().view({parity::kBatch, 1, kSide, kSide});
}

at::Tensor labels(const at::Tensor& batch) { return batch.select(1, kSide * kSide).to(at::kLong); }

std::shared_ptr<NetImpl> train(const Case& one, const parity::Inputs& inputs) {
  const int rank = inputs.group.rank();
  Net net(one.branch);
  parity::load_initial(*net, inputs.initial, rank);
  taas::DistributedDataParallel model(net, inputs.group, one.options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  model.zero_grad();
  for (int step = 0; step < parity::kSteps; ++step) {
    const bool with_extra = one.branch == Branch::kSometimes && (step + rank) % 3 == 0;
    const auto batch = inputs.data[step][rank];
    const auto backward = [&] { F::cross_entropy(model(images(batch), with_extra), labels(batch)).backward(); };
    if ((step + 1) % one.accumulate != 0) {
      auto scope = model.no_sync();
      backward();
      continue;
    }
    backward();
    optimizer.step();
    model.zero_grad();
  }
  return net.ptr();
}

}  // namespace

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    std::string name;
    words >> name;
    return train(all_cases().at(name), inputs);
  });
}
