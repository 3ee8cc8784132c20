#include "training/group/rendezvous.hpp"

#include <chrono>
#include <cstdint>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "catch.hpp"
#include "taas/error.hpp"

namespace rendezvous_test {

TEST_CASE("The ranks that do not come are named, those that came are not") {
  c10d::HashStore store;
  store.set("backend/1", std::vector<std::uint8_t>{'x'});
  const taas::Environment environment{.rank = 0, .world_size = 4, .master_address = "n0", .master_port = 29500};
  CHECK_THROWS_WITH(taas::exchange(store, environment, "x", std::chrono::milliseconds(1)),
                    "waited in vain for ranks 2, 3 of 4 to join through the store at n0:29500");
}

TEST_CASE("A long list of ranks is cut") {
  CHECK(taas::list_ranks({1, 2}) == "1, 2");
  CHECK(taas::list_ranks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

}  // namespace rendezvous_test
