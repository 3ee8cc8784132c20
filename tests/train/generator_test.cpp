#include <numeric>

#include "catch.hpp"
#include "digits.hpp"

namespace generator_test {

using taas::train::DigitSet;
using taas::train::generate_digits;
using taas::train::kDigitPixels;

namespace {

double mean_ink(const DigitSet& set) {
  return std::accumulate(set.pixels.begin(), set.pixels.end(), 0.0) / static_cast<double>(set.pixels.size());
}

}  // namespace

TEST_CASE("the same seed draws the same images, another seed others") {
  auto one = generate_digits(7, 50), again = generate_digits(7, 50), other = generate_digits(8, 50);
  CHECK(one.pixels == again.pixels);
  CHECK(one.labels == again.labels);
  CHECK(one.pixels != other.pixels);
}

TEST_CASE("a larger set begins with the smaller one") {
  CHECK(generate_digits(7, 50).slice(0, 20).pixels == generate_digits(7, 20).pixels);
}

TEST_CASE("all digits are equally frequent, and no two images of one are the same") {
  auto set = generate_digits(1, 200);
  CHECK(set.size() == 200);
  CHECK(set.pixels.size() == 200 * kDigitPixels);
  for (std::uint8_t digit = 0; digit < 10; ++digit)
    CHECK(std::count(set.labels.begin(), set.labels.end(), digit) == 20);
  for (std::size_t i = 10; i < set.size(); ++i) CHECK(set.slice(i, i + 1).pixels != set.slice(i - 10, i - 9).pixels);
}

TEST_CASE("images hold about as much ink as handwriting: the training normalises by its mean") {
  auto mean = mean_ink(generate_digits(3, 500));
  CHECK(mean > 20);
  CHECK(mean < 50);
}

TEST_CASE("no images are no images") { CHECK(generate_digits(1, 0).size() == 0); }

}  // namespace generator_test
