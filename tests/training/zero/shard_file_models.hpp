#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "zero/shard_files_folder.hpp"

namespace taas::test {

/// Sizes that no number of ranks divides.
inline torch::nn::Sequential sharded_net(std::int64_t hidden = 137) {
  at::manual_seed(4);
  torch::nn::Sequential network(torch::nn::Linear(5, hidden), torch::nn::Linear(hidden, 3));
  network->to(group_device);
  return network;
}

/// A loss that is the same in every world: that of rank 0 alone, in the average over a power of two of them.
template <class Optimizer>
void sharded_net_step(torch::nn::Sequential& network, Optimizer& optimizer, int number, const ProcessGroup& group) {
  const double share = group.rank() == 0 ? group.world_size() : 0;
  optimizer.zero_grad();
  (network->forward(at::linspace(-1, 1 + number, 30, here()).view({6, 5})).square().mean() * share).backward();
  optimizer.step();
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_content(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A model whose tensors, and the optimizer's, are all filled with the epoch.
struct FilledModel {
  inline static const torch::optim::AdamWOptions kOptions{0.01};

  ProcessGroup group;
  torch::nn::Sequential network;
  ZeroOptimizer optimizer;
  std::filesystem::path directory = shard_files_folder(::getppid()) / "shards";

  explicit FilledModel(const ProcessGroup& ranks, std::int64_t hidden = 137)
      : group(ranks), network(sharded_net(hidden)), optimizer(network->parameters(), group, kOptions) {}

  void fill(std::int64_t epoch) {
    auto copy = sharded_net(network->parameters()[0].size(0));
    AdamW whole(copy->parameters(), kOptions);
    copy->forward(at::ones({1, 5})).sum().backward();
    whole.step();
    auto state = optimizer_state(whole).toGenericDict();
    for (const auto& entry : state.at("state").toGenericDict()) {
      for (const auto& field : entry.value().toGenericDict()) {
        if (field.value().isTensor()) field.value().toTensor().fill_(epoch);
      }
    }
    optimizer.load_state(state);
  }
  void save(std::int64_t epoch) {
    optimizer.save_shards(directory.string(), {.epoch = epoch, .extra = {{"filled", at::full({1 << 16}, epoch)}}});
  }
  /// The epoch of the files, which all that they hold has to be of.
  std::int64_t load() {
    const auto rest = optimizer.load_shards(directory.string());
    expect_filled(rest.epoch);
    const auto extra = rest.extra.at("filled").toTensor();
    expect(at::equal(extra, at::full_like(extra, rest.epoch)), "the rest is of another save");
    return rest.epoch;
  }
  void expect_filled(std::int64_t epoch) {
    const auto state = optimizer.consolidated_state();
    if (group.rank() != 0) return;
    for (const auto& entry : state.toGenericDict().at("state").toGenericDict()) {
      for (const auto* name : {"exp_avg", "exp_avg_sq"}) {
        const auto tensor = entry.value().toGenericDict().at(name).toTensor();
        expect(at::equal(tensor, at::full_like(tensor, epoch)), "a state is not of epoch " + std::to_string(epoch));
      }
    }
  }
  [[nodiscard]] std::filesystem::path set() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.is_directory()) return entry.path();
    }
    return {};
  }
  [[nodiscard]] std::filesystem::path shard(int rank) const {
    return set() / ("shard-" + std::to_string(rank) + "-of-" + std::to_string(group.world_size()) + ".pt");
  }
  /// The manifest, and one set with a shard for each rank and the rest.
  void expect_one_save() {
    barrier(group);
    const auto count = [](const std::filesystem::path& path) {
      return std::distance(std::filesystem::directory_iterator(path), {});
    };
    expect(count(directory) == 2, std::to_string(count(directory)) + " entries in the directory");
    expect(count(set()) == group.world_size() + 1, std::to_string(count(set())) + " files in the set");
    barrier(group);
  }
};

}  // namespace taas::test
