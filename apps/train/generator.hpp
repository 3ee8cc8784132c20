#pragma once

#include <cstdint>

#include "digits.hpp"

namespace taas::train {

/// Draws digit-like images: pen strokes bent, turned, slanted, scaled and shifted at random, of random thickness, with
/// noise. Image i depends on `seed` and i alone, and shows digit i mod 10; so a larger set begins with the smaller one.
DigitSet generate_digits(std::uint64_t seed, std::size_t count);

}  // namespace taas::train
