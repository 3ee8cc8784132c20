#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "taas/error.hpp"
#include "taas/process_group.hpp"

namespace taas {

// For messages: "(64, 10)" and "(64, 10) Float".
inline std::string describe_shape(c10::IntArrayRef sizes) {
  std::string text = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + ")";
}
inline std::string describe(const at::Tensor& tensor) {
  return describe_shape(tensor.sizes()) + " " + c10::toString(tensor.scalar_type());
}

/// Throws InvalidArgument "<call>: <name> 9 is not a rank of this group of 4".
inline void check_rank(const ProcessGroup& group, const char* call, const char* name, int rank) {
  if (rank >= 0 && rank < group.world_size()) return;
  throw InvalidArgument(std::string(call) + ": " + name + " " + std::to_string(rank) +
                        " is not a rank of this group of " + std::to_string(group.world_size()));
}

}  // namespace taas
