#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <optional>
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

/// The groups of the whole optimizer, as in Python's state_dict()["param_groups"].
c10::IValue groups_of(const std::vector<BucketOptimizer>& buckets, const StateMap& map);
/// Throws CheckpointError when saved groups are others.
void check_groups(const c10::impl::GenericList& groups, const StateMap& map);

/// The state of a part of the parameter with this index among all; none where it has none.
using StateOfPart = std::function<std::optional<c10::impl::GenericDict>(const ParameterPart& part, std::size_t index)>;
/// What each bucket's optimizer is to take, from the saved groups and states.
std::vector<c10::IValue> states_of_buckets(const std::vector<BucketOptimizer>& buckets, const StateMap& map,
                                           const c10::impl::GenericList& groups, const StateOfPart& state_of);
void take_states(std::vector<BucketOptimizer>& buckets, std::vector<c10::IValue> states);

/// Each bucket's optimizer takes its shards' part of a whole state.
void scatter_state(const FlatParameters& parameters, std::vector<BucketOptimizer>& buckets, const StateMap& map,
                   const c10::IValue& state);

}  // namespace taas
