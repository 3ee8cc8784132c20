// zero_parity DIR: the C++ half of zero_parity.py.
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>

#include "parity_models.hpp"
#include "parity_program.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/zero.hpp"

namespace parity {
namespace {

constexpr double kZeroSmall = 0.001;  // MiB: many buckets

void train_sharded(const std::shared_ptr<Model>& module, bool branched, torch::optim::Optimizer& optimizer,
                   const taas::ProcessGroup& group, const at::Tensor& data) {
  taas::DistributedDataParallel<Model> model(
      module, group, {.bucket_cap_mb = kZeroSmall, .find_unused_parameters = branched, .broadcast_buffers = false});
  for (int step = 0; step < kSteps; ++step) {
    const auto batch = data[step][group.rank()];
    const auto scores = model(batch.slice(1, 0, kInputs).contiguous(), (step + group.rank()) % 3 == 0);
    nn::functional::cross_entropy(scores.to(at::kFloat), batch.select(1, kInputs).to(at::kLong)).backward();
    optimizer.step();
    model.zero_grad();
  }
}

}  // namespace
}  // namespace parity

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    std::string of;
    words >> of;
    const auto module = parity::make_model(of);
    if (auto* sparse = dynamic_cast<parity::Sparse*>(module.get())) sparse->words->options.sparse(false);
    parity::load_initial(*module, inputs.initial);
    taas::ZeroRedundancyOptimizer optimizer(
        module->parameters(), inputs.group,
        taas::optimizer_of<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9)));
    parity::train_sharded(module, of == "branched", optimizer, inputs.group, inputs.data);
    return module;
  });
}
