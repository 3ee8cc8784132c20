#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "taas/process_group.hpp"

namespace taas {

using NamedTensor = std::pair<std::string, at::Tensor>;

/// Throws InvalidArgument on every rank, with the same text, when the parameters of some rank differ from those of rank
/// 0 in number, name, shape, dtype or strides. A collective.
void check_same_parameters(const ProcessGroup& group, const std::vector<NamedTensor>& parameters);

/// What is different in `theirs` against `first` (both from describe_parameters): empty when nothing is.
std::string first_difference(const std::vector<std::string>& first, const std::vector<std::string>& theirs, int rank);
/// "conv1.weight (32, 1, 3, 3) Float, strides (9, 9, 3, 1)", one for each parameter.
std::vector<std::string> describe_parameters(const std::vector<NamedTensor>& parameters);

}  // namespace taas
