#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "training/zero/flat_parameters.hpp"

namespace taas {

/// One bucket's optimizer, with its shards in the order of its groups' parameters.
struct BucketOptimizer {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<Shard> shards;
};

/// Where the user's parameters are: the index of each trained one among all of the groups.
struct StateMap {
  std::vector<std::size_t> index_of;             ///< by trained parameter
  std::vector<std::vector<std::size_t>> groups;  ///< all indices of each group
};

/// The whole state on `root`; None elsewhere. A collective.
c10::IValue gather_state(const ProcessGroup& group, const FlatParameters& parameters,
                         const std::vector<BucketOptimizer>& buckets, const StateMap& map, int root);

/// Each bucket's optimizer takes its shards' part of a whole state.
void scatter_state(const FlatParameters& parameters, std::vector<BucketOptimizer>& buckets, const StateMap& map,
                   const c10::IValue& state);

}  // namespace taas
