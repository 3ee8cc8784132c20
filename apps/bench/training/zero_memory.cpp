// zero_memory: what the state of a sharded optimizer takes on this rank, beside that of the whole one. One line from
// rank 0: bytes of both, and their ratio, for four Linear(1024) under AdamW.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <iostream>

#include "taas/optimizers.hpp"
#include "taas/zero.hpp"

namespace {

std::int64_t whole_bytes(const torch::nn::Sequential& network) {
  std::int64_t bytes = 0;
  for (const auto& parameter : network->parameters()) bytes += 2 * static_cast<std::int64_t>(parameter.nbytes());
  return bytes;  // Adam's two moments
}

}  // namespace

int main() try {
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  torch::nn::Sequential network;
  for (int i = 0; i < 4; ++i) network->push_back(torch::nn::Linear(1024, 1024));
  taas::ZeroOptimizer optimizer(network->parameters(), group, torch::optim::AdamWOptions(1e-3));
  network->forward(at::randn({8, 1024})).square().mean().backward();
  optimizer.step();
  const auto whole = whole_bytes(network);
  const auto share = optimizer.state_bytes();
  if (group.rank() == 0) {
    std::cout << share << " bytes of " << whole << ": " << static_cast<double>(share) / static_cast<double>(whole)
              << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
