#include "run/coordinator/nodes/reachability.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace reachability_test {

using namespace taas;
using namespace taas::run;

namespace {

using Agents = std::vector<AgentId>;

const Agents kBoth{AgentId{0}, AgentId{1}};

}  // namespace

TEST_CASE("the first address that all reach is chosen, and asked for once") {
  Reachability reach;
  reach.aim(AgentId{0}, {"10.0.0.1", "192.168.0.1"}, 4711);
  CHECK(reach.to_ask(kBoth, at_ms(0)) == kBoth);
  CHECK(reach.to_ask(kBoth, at_ms(1)).empty());
  reach.answer(AgentId{0}, 1, {"10.0.0.1", "192.168.0.1"});
  CHECK_FALSE(reach.complete(kBoth));
  reach.answer(AgentId{1}, 1, {"192.168.0.1"});
  CHECK(reach.complete(kBoth));
  CHECK(reach.common(kBoth) == "192.168.0.1");
  CHECK(reach.to_ask({AgentId{0}, AgentId{2}}, at_ms(2)) == Agents{AgentId{2}});
}

TEST_CASE("another first node is measured anew") {
  Reachability reach;
  reach.aim(AgentId{0}, {"10.0.0.1"}, 4711);
  reach.to_ask(kBoth, at_ms(0));
  reach.answer(AgentId{1}, 1, {"10.0.0.1"});
  reach.aim(AgentId{0}, {"10.0.0.1"}, 4711);
  CHECK(reach.to_ask({AgentId{1}}, at_ms(0)).empty());
  reach.aim(AgentId{2}, {"10.0.0.3"}, 4711);
  CHECK(reach.to_ask({AgentId{1}}, at_ms(0)) == Agents{AgentId{1}});
  reach.answer(AgentId{1}, 1, {"10.0.0.1"});  // to the former question
  CHECK(reach.waiting());
  reach.answer(AgentId{1}, 2, {"10.0.0.3"});
  CHECK(reach.common({AgentId{1}}) == "10.0.0.3");
}

TEST_CASE("who does not answer reaches nothing; who is gone is not waited for") {
  Reachability reach;
  reach.aim(AgentId{0}, {"10.0.0.1"}, 4711);
  reach.to_ask({AgentId{0}, AgentId{1}, AgentId{2}}, at_ms(0));
  reach.answer(AgentId{0}, 1, {"10.0.0.1"});
  reach.forget(AgentId{2});
  CHECK(reach.next_expiry() == at_ms(10000));
  reach.expire(at_ms(9999));
  CHECK(reach.waiting());
  reach.expire(at_ms(10000));
  CHECK_FALSE(reach.waiting());
  CHECK_FALSE(reach.common(kBoth));
  CHECK(reach.odd_one_out(kBoth) == AgentId{1});
}

}  // namespace reachability_test
