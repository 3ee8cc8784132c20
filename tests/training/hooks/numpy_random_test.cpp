#include "training/hooks/numpy_random.hpp"

#include <vector>

#include "catch.hpp"

namespace numpy_random_test {

using Numbers = std::vector<std::uint32_t>;

Numbers draw(std::uint32_t seed, std::uint32_t end, std::size_t count) {
  taas::NumpyRandomState random(seed);
  Numbers numbers;
  while (numbers.size() < count) numbers.push_back(random.randint(end));
  return numbers;
}

TEST_CASE("Random integers are those of numpy.random.RandomState") {
  // numpy 2.4.6: [RandomState(seed).randint(end) ...]
  CHECK(draw(0, 1'000'000'000, 4) == Numbers{209652396, 398764591, 924231285, 404868288});
  CHECK(draw(12345, 1'000'000'000, 4) == Numbers{771445218, 601959909, 285080861, 561383553});
  CHECK(draw(7, 10, 12) == Numbers{4, 9, 6, 3, 3, 7, 7, 9, 7, 8, 9, 8});
}

}  // namespace numpy_random_test
