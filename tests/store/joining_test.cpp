#include "store/joining.hpp"

#include "catch.hpp"

namespace joining_test {

using taas::Rank;
using taas::store::joined_rank;

TEST_CASE("a rank's key of the default group tells the rank") {
  CHECK(joined_rank("/default_pg/0//cpu//0/0") == Rank{0});
  CHECK(joined_rank("/default_pg/0//cpu//0/31") == Rank{31});
  CHECK(joined_rank("/default_pg/1//cuda//0/7") == Rank{7});
  CHECK(joined_rank("taas/joined/12") == Rank{12});
}

TEST_CASE("other keys do not") {
  for (const auto* key : {"", "init/", "/k", "/default_pg/", "/default_pg/0//cpu//0/", "/default_pg/0//cpu//0/-1",
                          "/default_pg/0//cpu//0/1x", "/default_pg/0//cpu//0/99999999999", "/default_pg/0//cuda//0",
                          "/default_pg/0//1//cpu//0/0", "default_pg/0//cpu//0/0/", "taas/joined/", "taas/joined/x"}) {
    INFO(key);
    CHECK_FALSE(joined_rank(key));
  }
}

}  // namespace joining_test
