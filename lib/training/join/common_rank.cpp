#include "training/join/common_rank.hpp"

#include <ATen/ATen.h>

#include "taas/collectives.hpp"

namespace taas {

namespace {

at::Tensor summand(const ProcessGroup& group, int number) {
  return at::full({1}, number, at::TensorOptions(group.device()).dtype(at::kFloat));
}

}  // namespace

int common_rank(const ProcessGroup& group, bool candidate) {
  constexpr int kNoCandidate = -1;
  auto rank =
      at::full({1}, candidate ? group.rank() : kNoCandidate, at::TensorOptions(group.device()).dtype(at::kLong));
  all_reduce(group, rank, ReduceOp::kMax);
  return rank.item<int>();
}

int sum_over_ranks(const ProcessGroup& group, int number) {
  auto sum = summand(group, number);
  all_reduce(group, sum);
  return sum.item<int>();
}

void add_over_ranks(const ProcessGroup& group, int number) {
  auto sum = summand(group, number);
  all_reduce_async(group, sum);
}

}  // namespace taas
