#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cstdlib>

#include "taas/process_group.hpp"

// What scenarios share that work on either device. Their tensors are where the group works: on the CPU, or on this
// rank's GPU in the runs of nccl_gpu_test.cpp and gpu/training_gpu_test.cpp.

namespace taas::test {

inline c10::Device group_device = at::kCPU;

inline at::TensorOptions here(at::ScalarType type = at::kFloat) { return at::TensorOptions(type).device(group_device); }

inline ProcessGroup join_here() {
  auto group = init();
  group_device = group.device();
  return group;
}

/// Over nccl where the test asks for it (SpawnOptions::on_gpu), otherwise over gloo, whatever this machine has.
inline ProcessGroup join_as_asked() {
  const bool on_gpu = std::getenv("TAAS_TEST_ON_GPU") != nullptr;
  auto group = init({.backend = on_gpu ? Backend::kNccl : Backend::kGloo});
  group_device = group.device();
  if (on_gpu) {
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setAllowTF32CuDNN(false);
  }
  return group;
}

using SameTensors = bool (*)(const at::Tensor&, const at::Tensor&);

inline bool are_equal(const at::Tensor& a, const at::Tensor& b) { return at::equal(a.cpu(), b.cpu()); }

/// No further apart than a thousandth of the largest number: what is left of a few steps whose sums were taken in
/// another order. A step that is missed or made twice is further away.
inline bool are_near(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (a.numel() == 0) return true;
  constexpr double kPart = 1e-3, kNothing = 1e-12;
  const auto one = a.detach().cpu().to(at::kDouble), other = b.detach().cpu().to(at::kDouble);
  return (one - other).abs().max().item<double>() <= kPart * other.abs().max().item<double>() + kNothing;
}

/// To the bit on the CPU. On a GPU near: nccl sums in an order of its own, and kernels cut a slice into other pieces
/// than the whole.
inline SameTensors same_here() { return group_device.is_cuda() ? are_near : are_equal; }

}  // namespace taas::test
