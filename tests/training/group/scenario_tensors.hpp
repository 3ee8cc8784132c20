#pragma once

#include <ATen/ATen.h>

#include <string>

#include "rank_scenarios.hpp"
#include "taas/process_group.hpp"

// What scenarios of collectives share. Their tensors are where the group works: on the CPU, or on this rank's GPU in
// the runs of nccl_gpu_test.cpp.

namespace taas::test {

inline c10::Device group_device = at::kCPU;

inline at::TensorOptions here(at::ScalarType type = at::kFloat) { return at::TensorOptions(type).device(group_device); }

inline ProcessGroup join_here() {
  auto group = init();
  group_device = group.device();
  return group;
}

inline at::Tensor bits(const at::Tensor& tensor) { return tensor.reshape(-1).view(at::kByte); }

inline void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(at::equal(got.cpu(), wanted.cpu()), what + " gave " + got.toString() +
                                                 " that differs: " + std::to_string(got.sum().item<double>()) +
                                                 " in all, not " + std::to_string(wanted.sum().item<double>()));
}

}  // namespace taas::test
