#include "proc/inspect/process_memory.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>

#include "proc/inspect/interpreters.hpp"

namespace process_memory_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("pieces of memory are read, but for those that are not mapped") {
  const std::uint64_t number = 4711;
  auto* two =
      static_cast<std::byte*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(::munmap(two + 4096, 4096) == 0);  // whether or not something else comes there is no matter for `two`
  ProcessMemory memory(::getpid());
  const auto address = reinterpret_cast<std::uint64_t>(&number);
  std::array<std::byte, 8> first, second, third;
  std::array<ProcessMemory::Piece, 3> pieces{{{address, first}, {16, second}, {address, third}}};
  memory.read(pieces);
  CHECK((pieces[0].read && !pieces[1].read && pieces[2].read));
  CHECK(load<std::uint64_t>(first, 0) == number);
  CHECK(load<std::uint64_t>(third, 0) == number);
  CHECK(memory.read_value<std::uint64_t>(address) == number);
  CHECK_FALSE(memory.read_value<std::uint64_t>(16).has_value());
  CHECK(memory.refused() == 0);
  ::munmap(two, 4096);
}

TEST_CASE("more pieces than one system call takes are read") {
  std::vector<std::uint32_t> numbers(5000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  std::vector<std::uint32_t> copies(numbers.size());
  std::vector<ProcessMemory::Piece> pieces;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    pieces.push_back({reinterpret_cast<std::uint64_t>(&numbers[i]), std::as_writable_bytes(std::span(&copies[i], 1))});
  }
  ProcessMemory(::getpid()).read(pieces);
  CHECK(copies == numbers);
}

TEST_CASE("a process that has ended can no longer be read") {
  Talk program({"/bin/cat"});
  ProcessMemory memory(program.pid());
  program.kill();
  ProcessMemory gone(1 << 22);
  CHECK_FALSE(gone.read_value<int>(4096).has_value());
  CHECK(gone.refused() == ESRCH);
  CHECK_THAT(memory_refused(4711, ESRCH).message, ContainsSubstring("process 4711 has ended"));
}

TEST_CASE("symbols of a mapped file are found as the dynamic linker finds them") {
  Dl_info library{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&::getpid), &library) != 0);
  const auto start = reinterpret_cast<std::uint64_t>(library.dli_fbase);
  ProcessMemory memory(::getpid());
  constexpr std::array<std::string_view, 4> kNames = {"getpid", "environ", "no_such_symbol", "getpi"};
  auto found = find_symbols(memory, start, kNames);
  CHECK(found[0] == reinterpret_cast<std::uint64_t>(::dlsym(RTLD_NEXT, "getpid")));
  CHECK(found[1] != 0);
  CHECK(found[2] == 0);
  CHECK(found[3] == 0);
  CHECK(find_symbols(memory, start + 4096, kNames) == std::vector<std::uint64_t>(4));  // no ELF file begins there
  CHECK(find_symbols(memory, 4096, kNames) == std::vector<std::uint64_t>(4));
}

TEST_CASE("mapped files are visited once each, until it is enough") {
  std::vector<std::string> paths;
  Dl_info library{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&::getpid), &library) != 0);
  bool has_library = false;
  REQUIRE(visit_mapped_files(::getpid(), [&](const MappedFile& file) {
            paths.emplace_back(file.path);
            has_library = has_library || file.start == reinterpret_cast<std::uint64_t>(library.dli_fbase);
            return true;
          }).has_value());
  CHECK(std::ranges::count(paths, std::filesystem::read_symlink("/proc/self/exe").string()) == 1);
  CHECK(has_library);
  int visited = 0;
  REQUIRE(visit_mapped_files(::getpid(), [&](const MappedFile&) { return ++visited < 2; }).has_value());
  CHECK(visited == 2);
}

}  // namespace process_memory_test
