#pragma once

#include <cstdint>
#include <random>

namespace taas {

/// numpy.random.RandomState(seed), as far as PowerSGD draws from it: the same numbers. (numpy/random/_mt19937.pyx and
/// src/distributions/distributions.c: Mersenne Twister, bounded by masking and rejection.)
class NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed) : engine_(seed) {}

  /// randint(end): uniform in [0, end), for an end from 2 to 2^32 - 1.
  std::uint32_t randint(std::uint32_t end) {
    const std::uint32_t largest = end - 1;
    const std::uint32_t mask = ~std::uint32_t{0} >> __builtin_clz(largest);
    while (true) {
      const auto value = static_cast<std::uint32_t>(engine_()) & mask;
      if (value <= largest) return value;
    }
  }

 private:
  std::mt19937 engine_;
};

}  // namespace taas
