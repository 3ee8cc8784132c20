#include <torch/optim/adamw.h>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/zero.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

/// One rank of a group: a file of each rank in a folder, and from rank 0 the whole state in another file.
void write_zero(const std::vector<std::string>& arguments) {
  auto group = init({.backend = Backend::kGloo});
  TrainedModel trained;
  trained.start();
  DistributedDataParallel model(trained.model, group);
  ZeroRedundancyOptimizer optimizer(trained.model->parameters(), group,
                                    optimizer_of<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01)));
  model(TrainedModel::batch(group.rank())).square().sum().backward();
  optimizer.step();
  optimizer.save_files(arguments.at(0), 3);
  const auto state = optimizer.consolidated_state();
  if (group.rank() == 0) {
    save_checkpoint(arguments.at(1), {.model = module_state(*trained.model), .optimizer = state});
  }
}

}  // namespace

PeerTasks zero_peer_tasks() { return {{"zero", {"FOLDER PATH", write_zero}}}; }

}  // namespace taas::test
