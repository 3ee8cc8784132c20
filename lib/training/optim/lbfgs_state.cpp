#include "training/optim/lbfgs_state.hpp"

#include <ATen/ScalarOps.h>

#include <array>

#include "taas/error.hpp"

namespace taas {
namespace {

void check_direction(const char* name, const at::Tensor& direction, std::int64_t numbers) {
  if (direction.dim() == 1 && direction.numel() == numbers) return;
  throw CheckpointError("the LBFGS state of the checkpoint is for " + std::to_string(direction.numel()) + " numbers (" +
                        name + ") but the parameters have " + std::to_string(numbers) +
                        ": load it into an optimizer over the parameters that it was saved with");
}

/// The entries of a list of the history, which is not there before the first iteration.
std::size_t length_of(const char* name, const StateFields& fields) {
  const auto found = fields.find(name);
  return found == fields.end() ? 0 : found->value().toListRef().size();
}

void check_history(const StateFields& fields, std::int64_t numbers) {
  const auto directions = length_of("old_dirs", fields), steps = length_of("old_stps", fields);
  const auto factors = length_of("ro", fields);
  if (directions != steps || directions != factors) {
    throw CheckpointError("the LBFGS state of the checkpoint has " + std::to_string(directions) + " old_dirs, " +
                          std::to_string(steps) + " old_stps and " + std::to_string(factors) +
                          " ro, which must be as many: load a checkpoint that was saved whole");
  }
  for (const char* name : {"old_dirs", "old_stps"}) {
    if (directions == 0) return;
    for (const auto& direction : fields.at(name).toListRef()) check_direction(name, direction.toTensor(), numbers);
  }
}

/// Python's H_diag is a number until the history has an entry.
bool is_number_in(const StateFields& fields, const char* name) {
  const auto found = fields.find(name);
  return found != fields.end() && found->value().isScalar();
}

/// As libtorch wants them. A copy where something is to be changed, as the caller may have them, too.
StateFields completed(const StateFields& given) {
  constexpr std::array kAfterOneIteration{"t", "prev_loss"};
  auto fields = given;
  const auto change = [&](const char* name, const c10::IValue& value) {
    if (fields.is(given)) fields = given.copy();
    fields.insert_or_assign(name, value);
  };
  for (const char* name : kAfterOneIteration) {
    if (!given.contains(name)) change(name, 0.0);
  }
  if (is_number_in(given, "H_diag")) change("H_diag", c10::scalar_to_tensor(given.at("H_diag").toScalar()));
  return fields;
}

}  // namespace

void LbfgsKind::check_state(std::int64_t index, const std::vector<at::Tensor>& parameters,
                            const StateFields& fields) const {
  if (index != 0) {
    throw CheckpointError("the optimizer state of the checkpoint is not of LBFGS: it has one for parameter " +
                          std::to_string(index) + ", where LBFGS has one for all");
  }
  std::int64_t numbers = 0;
  for (const auto& parameter : parameters) numbers += parameter.numel();
  for (const char* name : {"d", "prev_flat_grad"}) {
    const auto found = fields.find(name);
    if (found != fields.end()) check_direction(name, found->value().toTensor(), numbers);
  }
  check_history(fields, numbers);
}

std::unique_ptr<torch::optim::OptimizerParamState> LbfgsKind::state_with(const StateFields& fields, c10::Device device,
                                                                         bool takes) const {
  return KindOf::state_with(completed(fields), device, takes);
}

}  // namespace taas
