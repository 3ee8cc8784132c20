#include "data/memory/stream_copy.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "catch.hpp"

namespace stream_copy_test {

using namespace taas::data;

TEST_CASE("a streamed copy has all bytes and touches no others, whatever begins where") {
  std::vector<unsigned char> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 1);
  const auto source = std::as_bytes(std::span(numbers));
  for (std::size_t from = 0; from < 20; ++from) {
    for (std::size_t to = 0; to < 20; ++to) {
      for (const std::size_t size : {0, 1, 15, 16, 63, 64, 65, 127, 500}) {
        std::vector<std::byte> target(600, std::byte{0xee});
        stream_copy(target.data() + to, source.subspan(from, size));
        auto expected = std::vector<std::byte>(600, std::byte{0xee});
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), size,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        REQUIRE(target == expected);
      }
    }
  }
}

}  // namespace stream_copy_test
