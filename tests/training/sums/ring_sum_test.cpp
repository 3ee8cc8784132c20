#include "training/sums/ring_sum.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"

namespace ring_sum_test {

namespace {

using taas::add_in_ring_order;
using taas::ring_chunk;

constexpr std::size_t kElement = sizeof(float);

/// Numbers of very different sizes: each order of adding has its own sum.
std::vector<std::vector<float>> parts_of(std::size_t ranks, std::size_t count) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> values(-1, 1);
  std::uniform_int_distribution<int> sizes(0, 20);
  std::vector<std::vector<float>> parts(ranks, std::vector<float>(count));
  for (auto& part : parts) {
    for (auto& value : part) value = values(random) * static_cast<float>(1 << sizes(random));
  }
  return parts;
}

std::vector<float> sum_of(const std::vector<std::vector<float>>& parts, std::size_t count) {
  std::vector<const float*> begins;
  for (const auto& part : parts) begins.push_back(part.data());
  std::vector<float> sum(count, -1);
  add_in_ring_order(begins, sum.data(), count);
  return sum;
}

}  // namespace

TEST_CASE("The chunks of a ring follow each other and are all of the elements") {
  for (const std::size_t ranks : {2, 3, 4, 7, 8}) {
    for (const std::size_t count : {0, 1, 5, 8, 100, 4160, 65536, 1 << 21}) {
      INFO(ranks << " ranks, " << count << " elements");
      std::size_t end = 0;
      for (std::size_t chunk = 0; chunk < ranks; ++chunk) {
        const auto of_rank = ring_chunk(count, kElement, ranks, chunk);
        CHECK(of_rank.begin == end);
        end = of_rank.end;
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("Chunks have the sizes that gloo gives them: two segments each, and the last ones may be empty") {
  CHECK(ring_chunk(16, kElement, 4, 0).end == 4);
  CHECK(ring_chunk(17, kElement, 4, 0).end == 6);  // 68 bytes in 8 segments of 12
  CHECK(ring_chunk(17, kElement, 4, 3).begin == 17);
  CHECK(ring_chunk(3, kElement, 4, 0).end == 2);
  CHECK(ring_chunk(3, kElement, 4, 1).end == 3);
  // 3 MiB are 8 segments for four ranks, and 5 are 12 for three: no segment is larger than 1 MiB.
  CHECK(ring_chunk(std::size_t{3} << 18, kElement, 4, 0).end == std::size_t{3} << 16);
  CHECK(ring_chunk(std::size_t{20} << 18, kElement, 3, 0).end == 7 * ((std::size_t{20} << 18) / 21 + 1));
}

TEST_CASE("Each chunk is added from the rank below its own downwards, its own last") {
  constexpr std::size_t kRanks = 4, kCount = 1000;
  const auto parts = parts_of(kRanks, kCount);
  const auto sum = sum_of(parts, kCount);
  std::size_t in_another_order = 0;
  for (std::size_t chunk = 0; chunk < kRanks; ++chunk) {
    const auto [begin, end] = ring_chunk(kCount, kElement, kRanks, chunk);
    for (std::size_t i = begin; i < end; ++i) {
      const auto below = [&](std::size_t steps) { return parts[(chunk + kRanks - steps) % kRanks][i]; };
      REQUIRE(sum[i] == ((below(1) + below(2)) + below(3)) + below(0));
      if (sum[i] != ((parts[0][i] + parts[1][i]) + parts[2][i]) + parts[3][i]) ++in_another_order;
    }
  }
  CHECK(in_another_order > 0);  // else this test would see no difference
}

}  // namespace ring_sum_test
