#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"

// An optimizer's state in Python's layout, as far as others than optimizer_state() look into it.

namespace taas {

using StateFields = c10::impl::GenericDict;

/// "params" of a group's fields is no option of it.
constexpr const char* kParams = "params";

/// The number of parameters in each group.
std::vector<std::size_t> group_sizes(const torch::optim::Optimizer& optimizer);

/// Reads a saved state, which may be of any form: whatever is thrown but a CheckpointError becomes one.
template <class Read>
auto understood(Read&& read) {
  try {
    return read();
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception&) {
    throw CheckpointError("the optimizer state of the checkpoint is not of this kind of optimizer");
  }
}

/// A saved state must have groups of these numbers of parameters. Throws CheckpointError.
void check_group_sizes(const c10::impl::GenericList& groups, const std::vector<std::size_t>& sizes);

/// The state of parameter `index` must have the parameter's shape. Throws CheckpointError.
void check_shapes(std::int64_t index, const at::Tensor& parameter, const StateFields& fields);

}  // namespace taas
