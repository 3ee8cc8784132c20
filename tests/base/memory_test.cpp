#include "base/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "catch.hpp"

namespace memory_test {

using namespace taas;

TEST_CASE("what one mapping of shared memory writes, another one reads") {
  constexpr std::size_t kSize = 3 * 4096;
  const auto memory = make_shared_memory(kSize).value();
  CHECK(is_shared_memory(memory, kSize));
  CHECK_FALSE(is_shared_memory(memory, kSize + 1));
  const auto written = Mapping::of(memory, kSize).value();
  const auto read = Mapping::to_read(memory, kSize).value();
  CHECK(std::ranges::all_of(read.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  written.bytes().back() = std::byte{7};
  CHECK(read.bytes().back() == std::byte{7});
}

TEST_CASE("memory that could shrink under our hands is none") {
  Fd file(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(file.get(), 4096) == 0);
  CHECK_FALSE(is_shared_memory(file, 4096));
}

TEST_CASE("memory that the machine does not have is an error") {
  const auto mapping = Mapping::of_own_memory(std::size_t{1} << 60);
  REQUIRE_FALSE(mapping.has_value());
  CHECK(mapping.error().system_errno == ENOMEM);
  CHECK_THAT(mapping.error().message, ContainsSubstring("no memory for "));
}

}  // namespace memory_test
