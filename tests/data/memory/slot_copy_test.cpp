#include "data/memory/slot_copy.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"

namespace slot_copy_test {

using namespace taas::data;

TEST_CASE("buffers are copied in steps of any size, with the digest of the whole") {
  std::vector<unsigned char> numbers(6'000'000);
  std::iota(numbers.begin(), numbers.end(), 1);
  const auto source = std::as_bytes(std::span(numbers));
  for (const std::size_t size : {std::size_t{1}, std::size_t{300'000}, source.size()}) {
    for (const std::size_t most : {std::size_t{1} << 18, std::size_t{1'000'000}, source.size()}) {
      const auto part = size / 3;
      SlotCopy copy({source.first(part), source.subspan(part, part), source.subspan(2 * part, size - 2 * part)});
      CHECK(copy.bytes() == size);
      std::vector<std::byte> slot(size + 10, std::byte{0xee});
      std::size_t steps = 0;
      for (; !copy.is_done(); ++steps) copy.step(slot, most);
      CHECK(steps <= size / std::min(most, size) + 1);
      CHECK(std::ranges::equal(std::span(slot).first(size), source.first(size)));
      CHECK(slot[size] == std::byte{0xee});
      CHECK(copy.digest() == digest_of(source.first(size)));
    }
  }
}

}  // namespace slot_copy_test
