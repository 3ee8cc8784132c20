#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace taas::train {

inline constexpr int kDigitSide = 28;
inline constexpr std::size_t kDigitPixels = kDigitSide * kDigitSide;

/// Grey images of digits and what they show.
struct DigitSet {
  std::vector<std::uint8_t> pixels;  ///< [size, 28, 28], row after row; 0 is background, 255 is ink
  std::vector<std::uint8_t> labels;  ///< [size], 0…9

  [[nodiscard]] std::size_t size() const { return labels.size(); }
  /// The images begin…end-1.
  [[nodiscard]] DigitSet slice(std::size_t begin, std::size_t end) const;
};

struct Digits {
  DigitSet train;
  DigitSet test;
};

/// Reads the standard files of a folder, in the IDX format (http://yann.lecun.com/exdb/mnist), plain or gzip:
/// {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]. Throws InputError when a file is missing, damaged, or not of this
/// kind, or when two do not belong together.
/// A folder that holds only the t10k pair is split: the first 80 % to train, the rest to test.
Digits read_digits(const std::filesystem::path& folder);

/// Draws digit-like images: pen strokes turned, slanted, scaled and shifted at random, of random thickness, with
/// noise. Image i depends on `seed` and i alone, and shows digit i mod 10; so a larger set begins with the smaller one.
DigitSet generate_digits(std::uint64_t seed, std::size_t count);

}  // namespace taas::train
