// zero_parity DIR: the C++ half of zero_parity.py, which writes DIR/cases.txt, DIR/initial.bin and DIR/data.bin, runs
// both halves and compares DIR/cpp.<case>.<rank>.bin with DIR/python.<case>.<rank>.bin. Everything is raw float32.
#include <torch/nn/functional/loss.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "hook_models.hpp"
#include "state_files.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/zero.hpp"

namespace parity {
namespace {

constexpr int kZeroSteps = 10;
constexpr int kZeroBatch = 4;
constexpr double kZeroSmall = 0.001;  // MiB: many buckets

struct ZeroCase {
  int stage = 2;
  std::string optimizer;
  std::string model;
};

std::shared_ptr<Model> make_dense_model(const std::string& name) {
  auto model = make_model(name);
  if (auto* sparse = dynamic_cast<Sparse*>(model.get())) sparse->words->options.sparse(false);
  return model;
}

std::unique_ptr<taas::ZeroOptimizer> make_sharded(const Model& module, const ZeroCase& which,
                                                  const taas::ProcessGroup& group) {
  const taas::ZeroOptions options{
      .stage = which.stage, .bucket_cap_mb = kZeroSmall, .find_unused_parameters = which.model == "branched"};
  const auto make = [&](const auto& defaults) {
    return std::make_unique<taas::ZeroOptimizer>(module.parameters(), group, defaults, options);
  };
  if (which.optimizer == "adamw") return make(torch::optim::AdamWOptions(0.01));
  return make(torch::optim::SGDOptions(0.1).momentum(0.9));
}

/// Each rank begins with values of its own: the optimizer has to replace them. Buffers are no matter of its stage 2.
void load_own(const Model& module, const at::Tensor& initial, const taas::ProcessGroup& group) {
  load_initial(module, initial);
  at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) parameter.add_(0.25 * group.rank());
}

void train_sharded(Model& module, taas::ZeroOptimizer& optimizer, const taas::ProcessGroup& group,
                   const ZeroCase& which, const at::Tensor& data) {
  std::optional<taas::DistributedDataParallel<Model>> wrapped;
  if (which.stage == 1) {
    std::shared_ptr<Model> unowned(&module, [](Model*) {});
    wrapped.emplace(unowned, group,
                    taas::DistributedDataParallelOptions{.bucket_cap_mb = kZeroSmall,
                                                         .find_unused_parameters = which.model == "branched",
                                                         .broadcast_buffers = false});
  }
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto batch = data[step][group.rank()];
    const auto inputs = batch.slice(1, 0, kInputs).contiguous();
    const bool more = (step + group.rank()) % 3 == 0;
    const auto scores = wrapped ? (*wrapped)(inputs, more) : module.forward(inputs, more);
    nn::functional::cross_entropy(scores.to(at::kFloat), batch.select(1, kInputs).to(at::kLong)).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

}  // namespace
}  // namespace parity

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: zero_parity DIR\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  at::set_num_threads(1);
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  const auto initial = parity::read_floats(folder / "initial.bin");
  const auto data = parity::read_floats(folder / "data.bin")
                        .view({parity::kZeroSteps, group.world_size(), parity::kZeroBatch, parity::kInputs + 1});
  std::ifstream cases(folder / "cases.txt");
  for (parity::ZeroCase which; cases >> which.stage >> which.optimizer >> which.model;) {
    const auto module = parity::make_dense_model(which.model);
    parity::load_own(*module, initial, group);
    const auto optimizer = parity::make_sharded(*module, which, group);
    parity::train_sharded(*module, *optimizer, group, which, data);
    const auto file = "cpp." + std::to_string(which.stage) + "." + which.optimizer + "." + which.model + "." +
                      std::to_string(group.rank()) + ".bin";
    parity::write_state(*module, folder / file);
  }
  taas::barrier(group);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
