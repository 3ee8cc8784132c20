// ddp_parity DIR: the C++ half of ddp_parity.py, which writes DIR/initial.bin and DIR/data.bin, runs both halves and
// compares DIR/cpp.<case>.<rank>.bin with DIR/python.<case>.<rank>.bin. Everything is raw float32.
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <iostream>
#include <vector>

#include "state_files.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"

namespace {

namespace F = torch::nn::functional;
using Folder = std::filesystem::path;
using Options = taas::DistributedDataParallelOptions;

constexpr int kSteps = 10;
constexpr int kBatch = 4;
constexpr int kSide = 8;
constexpr int kClasses = 10;

enum class Branch { kAbsent, kSometimes, kNever };

struct Case {
  std::string name;
  Options options = {};
  Branch branch = Branch::kAbsent;
  int accumulate = 1;  ///< steps between two synchronisations
};

/// The list of ddp_parity.py, in its order.
std::vector<Case> all_cases() {
  return {
      {.name = "default"},
      {.name = "many_buckets", .options = {.bucket_cap_mb = 0.001}},
      {.name = "bucket_view", .options = {.gradient_as_bucket_view = true}},
      {.name = "bucket_view_many_buckets", .options = {.bucket_cap_mb = 0.001, .gradient_as_bucket_view = true}},
      {.name = "no_sync", .accumulate = 2},
      {.name = "no_sync_bucket_view", .options = {.gradient_as_bucket_view = true}, .accumulate = 3},
      {.name = "find_unused", .options = {.find_unused_parameters = true}, .branch = Branch::kSometimes},
      {.name = "find_unused_many_buckets",
       .options = {.bucket_cap_mb = 0.001, .find_unused_parameters = true},
       .branch = Branch::kSometimes},
      {.name = "static_graph", .options = {.static_graph = true}},
      {.name = "static_graph_unused",
       .options = {.bucket_cap_mb = 0.001, .static_graph = true},
       .branch = Branch::kNever},
      {.name = "own_buffers", .options = {.broadcast_buffers = false}},
  };
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

/// data.bin: (steps, ranks, batch, pixels + label).
struct Batches {
  at::Tensor all;
  at::Tensor images(int step, int rank) const {
    return all[step][rank].slice(1, 0, kSide * kSide).contiguous().view({kBatch, 1, kSide, kSide});
  }
  at::Tensor labels(int step, int rank) const { return all[step][rank].select(1, kSide * kSide).to(at::kLong); }
};

void train(const Case& one, const taas::ProcessGroup& group, const Batches& batches, const Folder& folder) {
  Net net(one.branch);
  parity::load_initial(*net, parity::read_floats(folder / "initial.bin"), group.rank());
  taas::DistributedDataParallel model(net, group, one.options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  model.zero_grad();
  for (int step = 0; step < kSteps; ++step) {
    const bool with_extra = one.branch == Branch::kSometimes && (step + group.rank()) % 3 == 0;
    const auto backward = [&] {
      auto scores = model(batches.images(step, group.rank()), with_extra);
      F::cross_entropy(scores, batches.labels(step, group.rank())).backward();
    };
    if ((step + 1) % one.accumulate != 0) {
      auto scope = model.no_sync();
      backward();
      continue;
    }
    backward();
    optimizer.step();
    model.zero_grad();
  }
  parity::write_state(*net, folder / ("cpp." + one.name + "." + std::to_string(group.rank()) + ".bin"));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: ddp_parity DIR\n";
    return 2;
  }
  const Folder folder = argv[1];
  at::set_num_threads(1);
  auto group = taas::init({.backend = taas::Backend::kGloo});
  const Batches batches{
      parity::read_floats(folder / "data.bin").view({kSteps, group.world_size(), kBatch, kSide * kSide + 1})};
  for (const auto& one : all_cases()) train(one, group, batches, folder);
  taas::barrier(group);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
