// zero_memory: what the state of a sharded optimizer takes on this rank, beside that of the whole one. One line from
// rank 0: numbers of both, and their ratio, for four Linear(1024) under AdamW.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <iostream>

#include "taas/zero.hpp"

namespace {

template <class Parameters>
std::int64_t numbers_of(const Parameters& parameters) {
  std::int64_t count = 0;
  for (const auto& parameter : parameters) count += 2 * parameter.numel();  // Adam's two moments
  return count;
}

}  // namespace

int main() try {
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  torch::nn::Sequential network;
  for (int i = 0; i < 4; ++i) network->push_back(torch::nn::Linear(1024, 1024));
  taas::ZeroRedundancyOptimizer optimizer(network->parameters(), group,
                                          taas::optimizer_of<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-3)));
  const auto whole = numbers_of(network->parameters());
  const auto part = numbers_of(optimizer.local().param_groups()[0].params());
  if (group.rank() == 0) {
    std::cout << part << " numbers of " << whole << ": " << static_cast<double>(part) / static_cast<double>(whole)
              << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
