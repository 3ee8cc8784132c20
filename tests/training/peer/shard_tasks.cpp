#include <torch/optim/adamw.h>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/zero.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

/// One rank of a group: its shards in a directory, and from rank 0 the whole state in a file.
void write_shards(const std::vector<std::string>& arguments) {
  auto group = init({.backend = Backend::kGloo});
  TrainedModel trained;
  trained.start();
  ZeroOptimizer optimizer(trained.model->parameters(), group, torch::optim::AdamWOptions(0.01));
  trained.model->forward(TrainedModel::batch(0)).square().sum().backward();
  optimizer.step();
  const auto state = optimizer.consolidated_state();
  optimizer.save_shards(arguments.at(0),
                        {.epoch = 3, .model = module_state(*trained.model), .extra = {{"note", "from C++"}}});
  if (group.rank() == 0) save_checkpoint(arguments.at(1), {.optimizer = state});
}

}  // namespace

PeerTasks shard_peer_tasks() { return {{"shards", {"DIRECTORY PATH", write_shards}}}; }

}  // namespace taas::test
