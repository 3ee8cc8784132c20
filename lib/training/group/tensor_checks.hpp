#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "taas/collectives.hpp"

namespace taas {

// Refusals of the collectives: each throws InvalidArgument "<call>: …" naming what it got.

/// Defined, dense, contiguous, and on the CPU or the group's device.
void check_tensor(const ProcessGroup& group, const char* call, const at::Tensor& tensor);
/// The same for a tensor that is written to: not a view that is conjugated or negated as it is read.
void check_output(const ProcessGroup& group, const char* call, const at::Tensor& tensor);
/// `all` has shape (world_size, *one.shape) and the dtype and device of `one`; both pass check_tensor.
void check_rows(const ProcessGroup& group, const char* call, const char* all_name, const at::Tensor& all,
                const char* one_name, const at::Tensor& one);
void check_rank(const ProcessGroup& group, const char* call, const char* name, int rank);
/// In the group, and not this rank itself.
void check_other_rank(const ProcessGroup& group, const char* call, const char* name, int rank);
/// The type is one that backends reduce in this way, and an average needs one that can hold it.
void check_operation(const char* call, const at::Tensor& tensor, ReduceOp op);

// For messages: "(64, 10) Float" and "(64, 10)".
std::string describe(const at::Tensor& tensor);
std::string describe_shape(c10::IntArrayRef sizes);

}  // namespace taas
