#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"

// An optimizer's state in Python's layout, and what all kinds of optimizers do with it alike.

namespace taas {

using StateFields = c10::impl::GenericDict;

/// "params" of a group's fields is no option of it.
constexpr const char* kParams = "params";

/// Python gives whole numbers and tensors for broken numbers, too.
double number_from(const c10::IValue& value);

/// All parameters of all groups, in the order of their indices in Python's layout.
std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);

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

/// How libtorch stores one kind of optimizer: its options and the states of its parameters.
class StateKind {
 public:
  virtual ~StateKind() = default;

  /// The state of parameter `index` must fit `parameters`, all of the optimizer. Throws CheckpointError.
  virtual void check_state(std::int64_t index, const std::vector<at::Tensor>& parameters,
                           const StateFields& fields) const {
    check_shapes(index, parameters.at(static_cast<std::size_t>(index)), fields);
  }

  [[nodiscard]] virtual StateFields options(const torch::optim::OptimizerOptions& of) const = 0;
  [[nodiscard]] virtual StateFields state(const torch::optim::OptimizerParamState& of, StateTensors tensors) const = 0;
  /// A copy of `from` with these fields. Throws std::exception where one is missing or of another type.
  [[nodiscard]] virtual std::unique_ptr<torch::optim::OptimizerOptions> options_with(
      const torch::optim::OptimizerOptions& from, const StateFields& fields) const = 0;
  /// Its tensors are on the device of the parameter; with `takes`, those that nobody else has are not copied.
  [[nodiscard]] virtual std::unique_ptr<torch::optim::OptimizerParamState> state_with(const StateFields& fields,
                                                                                      c10::Device device,
                                                                                      bool takes) const = 0;
};

/// Null: it is of a kind that only its own save() and load() know.
const StateKind* known_kind_of(const torch::optim::Optimizer& optimizer);

}  // namespace taas
