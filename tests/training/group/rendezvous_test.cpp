#include "training/group/rendezvous.hpp"

#include "catch.hpp"

namespace rendezvous_test {

TEST_CASE("A long list of ranks is cut") {
  CHECK(taas::list_ranks({1, 2}) == "1, 2");
  CHECK(taas::list_ranks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

}  // namespace rendezvous_test
