#include "base/bytes.hpp"

#include "catch.hpp"

namespace bytes_test {

using namespace taas;

TEST_CASE("a size is said in the largest unit that it fills") {
  CHECK(size_in_words(0) == "0 KiB");
  CHECK(size_in_words(kMiB - 1) == "1023 KiB");
  CHECK(size_in_words(64 * kMiB) == "64 MiB");
  CHECK(size_in_words(kGiB - 1) == "1023 MiB");
  CHECK(size_in_words(kGiB * 3 / 2) == "1.5 GiB");
  CHECK(share_in_words(kGiB * 6 / 5, 4 * kGiB) == "1.2 of 4.0 GiB");
  CHECK(share_in_words(kKiB, 64 * kMiB) == "0 of 64 MiB");
  CHECK(share_in_words(0, 0) == "0 of 0 KiB");
}

}  // namespace bytes_test
