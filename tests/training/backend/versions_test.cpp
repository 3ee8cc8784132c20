#include "training/backend/versions.hpp"

#include "catch.hpp"

namespace versions_test {

using namespace taas;

namespace {

constexpr std::uint64_t torch(std::uint64_t major, std::uint64_t minor, std::uint64_t patch) {
  return major << 56 | minor << 48 | patch << 40;
}

}  // namespace

TEST_CASE("a torch of another release is named with the one that libtaas was built with") {
  CHECK(difference_of_torch(torch(2, 15, 0), torch(2, 15, 0)).empty());
  CHECK(difference_of_torch(torch(2, 15, 0), torch(2, 15, 1) | 7).empty());
  CHECK(difference_of_torch(torch(2, 15, 0), torch(2, 14, 1)) ==
        "libtaas was built with torch 2.15.0, and this program has loaded 2.14.1: build libtaas with that one, or put "
        "the other one's folder first in LD_LIBRARY_PATH");
  CHECK_FALSE(difference_of_torch(torch(2, 15, 0), torch(3, 15, 0)).empty());
}

TEST_CASE("an older NCCL is named, and a newer one is as good") {
  CHECK(difference_of_nccl(23007, 23007).empty());
  CHECK(difference_of_nccl(23007, 23004).empty());
  CHECK(difference_of_nccl(23007, 23101).empty());
  CHECK(difference_of_nccl(23007, 22809)
            .starts_with("libtaas was built with NCCL 2.30.7, and this program has loaded "
                         "2.28.9: "));
  CHECK_FALSE(difference_of_nccl(23007, 30000).empty());
}

TEST_CASE("the torch that these tests have loaded is the one they were built with") { CHECK_NOTHROW(check_torch()); }

}  // namespace versions_test
