#include "node/store_passage.hpp"

#include "catch.hpp"

namespace store_passage_test {

using taas::node::MeetingPlace;

TEST_CASE("ranks are sent to where nodes met if all of them reach it by one address") {
  const MeetingPlace at_a_name{{"10.0.0.1", "fd00::1", "127.0.0.1"}, 29500};
  CHECK(at_a_name.address_for("10.0.0.1") == "10.0.0.1");
  CHECK(at_a_name.address_for("fd00::1") == "fd00::1");
  CHECK(at_a_name.address_for("10.1.0.1").empty());
  const MeetingPlace on_loopback{{"127.0.0.1", "::1"}, 29500};
  CHECK(on_loopback.address_for("10.0.0.1") == "127.0.0.1");
  CHECK(MeetingPlace{}.address_for("10.0.0.1").empty());
}

}  // namespace store_passage_test
