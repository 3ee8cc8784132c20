#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace taas {

/// The default CPU generator and the number of threads are at the end as they were at the beginning.
class UntouchedState {
 public:
  UntouchedState();
  ~UntouchedState();
  UntouchedState(const UntouchedState&) = delete;
  UntouchedState& operator=(const UntouchedState&) = delete;

 private:
  at::Tensor generator_;
  int threads_;
};

/// A copy of the default CPU generator's state: uint8.
at::Tensor default_generator_state();
void set_default_generator_state(const at::Tensor& state);
/// What the default generator was seeded with.
std::uint64_t default_seed();
void seed_default_generator(std::uint64_t seed);

}  // namespace taas
