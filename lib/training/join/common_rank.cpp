#include "training/join/common_rank.hpp"

#include <ATen/ATen.h>

#include "taas/collectives.hpp"

namespace taas {

int common_rank(const ProcessGroup& group, bool candidate) {
  constexpr int kNoCandidate = -1;
  auto rank =
      at::full({1}, candidate ? group.rank() : kNoCandidate, at::TensorOptions(group.device()).dtype(at::kLong));
  all_reduce(group, rank, ReduceOp::kMax);
  return rank.item<int>();
}

int sum_over_ranks(const ProcessGroup& group, int number) {
  auto sum = at::full({1}, number, at::TensorOptions(group.device()).dtype(at::kFloat));
  all_reduce(group, sum);
  return sum.item<int>();
}

}  // namespace taas
