// zero_parity DIR: the C++ half of zero_parity.py.
#include <torch/nn/functional/loss.h>

#include <memory>
#include <optional>

#include "parity_models.hpp"
#include "parity_program.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/zero.hpp"

namespace parity {
namespace {

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
  for (int step = 0; step < kSteps; ++step) {
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

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    parity::ZeroCase which;
    words >> which.stage >> which.optimizer >> which.model;
    const auto module = parity::make_dense_model(which.model);
    parity::load_own(*module, inputs.initial, inputs.group);
    const auto optimizer = parity::make_sharded(*module, which, inputs.group);
    parity::train_sharded(*module, *optimizer, inputs.group, which, inputs.data);
    return module;
  });
}
