#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include "training/hooks/numpy_random.hpp"

namespace taas {

/// Draws the first factors of PowerSGD: the same on all ranks, others each time, and without a trace in the program's
/// own random numbers. As torch draws them: on the CPU.
class RandomFactors {
 public:
  explicit RandomFactors(NumpyRandomState& seeds)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seeds.randint(kSeeds))) {}

  void fill(const at::Tensor& factor) {
    factor.copy_(at::randn(factor.sizes(), generator_, factor.options().device(at::kCPU)));
  }

 private:
  static constexpr std::uint32_t kSeeds = 1'000'000'000;
  at::Generator generator_;
};

}  // namespace taas
