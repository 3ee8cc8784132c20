#include "data/memory/memory.hpp"

#include <unistd.h>

#include <span>
#include <string>

#include "base/memory.hpp"
#include "catch.hpp"
#include "data/memory/arena.hpp"

namespace memory_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("only sealed memory of the size that is said is a dataset's") {
  auto open_to_writing = make_shared_memory(64);
  REQUIRE(open_to_writing.has_value());
  CHECK_FALSE(SealedMemory::of(std::move(*open_to_writing), 64).has_value());
  const std::string text(64, 'm');
  auto sealed = SealedMemory::copy_of(std::as_bytes(std::span(text)));
  REQUIRE(sealed.has_value());
  CHECK_FALSE(SealedMemory::of(Fd(::dup(sealed->descriptor.get())), 65).has_value());
  CHECK(SealedMemory::of(Fd(::dup(sealed->descriptor.get())), 64).has_value());
}

TEST_CASE("where there is no memory for batches, the error says what needs less") {
  const auto kind = GENERATE(SlotMemory::kOwn, SlotMemory::kShared);
  const auto arena = Arena::make(kind, std::size_t{1} << 60, 1);
  REQUIRE_FALSE(arena.has_value());
  CHECK_THAT(arena.error().message,
             ContainsSubstring("no memory for 1152921504606.8 MB of batches (a smaller --data-buffer needs less): "));
}

}  // namespace memory_test
