#pragma once

#include <ATen/core/List.h>

#include "training/optim/state_values.hpp"

// For kinds of optimizers that are not known here: libtorch, or the program, knows how to save each into an archive of
// libtorch's own layout, in which parameters are named by their address. That archive is turned into Python's layout
// and back, through its serialised form: all of it is copied.

namespace taas {

/// {"state", "param_groups"}, on the CPU.
c10::IValue state_by_archive(const torch::optim::Optimizer& optimizer);

/// Throws std::exception where it is of another kind, before anything is changed.
void load_by_archive(torch::optim::Optimizer& optimizer, const StateFields& states,
                     const c10::impl::GenericList& groups);

}  // namespace taas
