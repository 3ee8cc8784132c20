#include "base/ids.hpp"

#include <set>

#include "catch.hpp"

namespace ids_test {

using namespace taas;

TEST_CASE("ids of one kind compare by value") {
  CHECK(Rank{1} < Rank{2});
  CHECK(Rank{3} == Rank{3});
}

TEST_CASE("run ids do not collide and sort by time") {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(make_run_id());
  CHECK(ids.size() == 100);
  CHECK(ids.begin()->size() == std::string("20260102-030405-1a2b3c").size());
}

TEST_CASE("random_hex gives two digits a byte") {
  CHECK(random_hex(16).size() == 32);
  CHECK(random_hex(16) != random_hex(16));
  CHECK(random_hex(3).find_first_not_of("0123456789abcdef") == std::string::npos);
}

}  // namespace ids_test
