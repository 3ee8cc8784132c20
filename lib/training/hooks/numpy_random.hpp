#pragma once

#include <cstdint>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

namespace taas {

/// numpy.random.RandomState(seed), as far as PowerSGD draws from it: the same numbers. (numpy/random/_mt19937.pyx and
/// src/distributions/distributions.c: Mersenne Twister, bounded by masking and rejection.)
class NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed) : engine_(seed) {}

  /// Where it is, in words of numbers, and back. Throws std::invalid_argument for another text.
  [[nodiscard]] std::string text() const {
    std::ostringstream words;
    words << engine_;
    return words.str();
  }
  static NumpyRandomState of(const std::string& text) {
    NumpyRandomState state(0);
    std::istringstream words(text);
    if (!(words >> state.engine_)) throw std::invalid_argument("no state of a Mersenne Twister");
    return state;
  }

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
