#include "training/group/tensor_checks.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "taas/error.hpp"

namespace taas {
namespace {

[[noreturn]] void refuse(const char* call, const std::string& what) {
  throw InvalidArgument(std::string(call) + ": " + what);
}

bool is_reduced(c10::ScalarType type) {
  constexpr c10::ScalarType kReduced[] = {at::kByte, at::kChar,     at::kBool,  at::kInt,   at::kLong,
                                          at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};
  return std::find(std::begin(kReduced), std::end(kReduced), type) != std::end(kReduced);
}

}  // namespace

std::string describe_shape(c10::IntArrayRef sizes) {
  std::string text = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + ")";
}

std::string describe(const at::Tensor& tensor) {
  return describe_shape(tensor.sizes()) + " " + c10::toString(tensor.scalar_type());
}

void check_tensor(const ProcessGroup& group, const char* call, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(call, "a tensor is undefined");
  if (tensor.layout() != c10::kStrided) refuse(call, "a tensor is sparse; only dense ones can be communicated");
  if (!tensor.is_contiguous()) refuse(call, "the tensor " + describe(tensor) + " is not contiguous");
  if (!tensor.is_cpu() && tensor.device() != group.device()) {
    refuse(call, "the tensor " + describe(tensor) + " is on " + tensor.device().str() + ", but this group works on " +
                     group.device().str());
  }
}

void check_rows(const ProcessGroup& group, const char* call, const char* all_name, const at::Tensor& all,
                const char* one_name, const at::Tensor& one) {
  check_tensor(group, call, all);
  check_tensor(group, call, one);
  std::vector<std::int64_t> wanted{group.world_size()};
  wanted.insert(wanted.end(), one.sizes().begin(), one.sizes().end());
  if (all.sizes() != c10::IntArrayRef(wanted) || all.scalar_type() != one.scalar_type()) {
    refuse(call, std::string(all_name) + " is " + describe(all) + " but must be " + describe_shape(wanted) + " " +
                     c10::toString(one.scalar_type()) + ", a row of " + one_name + "'s shape for each rank");
  }
  if (all.device() != one.device()) {
    refuse(call,
           std::string(all_name) + " is on " + all.device().str() + ", " + one_name + " on " + one.device().str());
  }
}

void check_rank(const ProcessGroup& group, const char* call, const char* name, int rank) {
  if (rank >= 0 && rank < group.world_size()) return;
  refuse(call, std::string(name) + " " + std::to_string(rank) + " is not a rank of this group of " +
                   std::to_string(group.world_size()));
}

void check_other_rank(const ProcessGroup& group, const char* call, const char* name, int rank) {
  check_rank(group, call, name, rank);
  if (rank == group.rank()) refuse(call, std::string(name) + " " + std::to_string(rank) + " is this rank itself");
}

void check_output(const ProcessGroup& group, const char* call, const at::Tensor& tensor) {
  check_tensor(group, call, tensor);
  if (!tensor.is_conj() && !tensor.is_neg()) return;
  refuse(call, "the tensor " + describe(tensor) + " is a " + (tensor.is_conj() ? "conjugated" : "negated") +
                   " view, which cannot be written to: give the tensor that it is a view of, or a copy (clone())");
}

void check_operation(const char* call, const at::Tensor& tensor, ReduceOp op) {
  const auto type = tensor.scalar_type();
  const bool orders = op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (op == ReduceOp::kAverage && !tensor.is_floating_point() && !tensor.is_complex()) {
    refuse(call, std::string("kAverage needs a floating point tensor, not ") + c10::toString(type));
  }
  if (tensor.is_complex() && op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    refuse(call, std::string("complex numbers are reduced by kSum and kAverage alone, and the tensor is ") +
                     c10::toString(type));
  }
  if (type == at::kBool && !orders) refuse(call, "Bool is reduced by kMin (all) and kMax (any) alone");
  if (!is_reduced(c10::toRealValueType(type))) {
    refuse(call, std::string("no backend reduces ") + c10::toString(type) +
                     ": convert it, for example to Int, Long, Half or Float");
  }
}

}  // namespace taas
