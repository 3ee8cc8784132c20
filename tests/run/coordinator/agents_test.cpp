#include "run/coordinator/agents.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace agents_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("messages go only to agents that are there") {
  Parts parts;
  parts.add(2);
  parts.agents.send(AgentId{0}, Abandon{});
  parts.agents.send(AgentId{7}, Abandon{});
  CHECK(parts.decided() == Strings{"0: abandon"});
  parts.agents.send_all(Abandon{});
  CHECK(parts.decided() == Strings{"0: abandon", "1: abandon"});
}

TEST_CASE("an agent that is dismissed is told why and forgotten") {
  Parts parts;
  parts.add(1);
  parts.agents.silence().watch(AgentId{0}, at_ms(0));
  parts.agents.dismiss(AgentId{0}, "a wrong version", 2);
  CHECK(parts.decided() == Strings{"0: dismissed 2 a wrong version"});
  CHECK(parts.agents.empty());
  CHECK(parts.agents.silence().check(at_ms(100000)).lost.empty());
}

TEST_CASE("an agent that connects again is known by its process") {
  Parts parts;
  parts.add(2);
  CHECK(parts.agents.connected("host1") == AgentId{1});
  CHECK_FALSE(parts.agents.connected("host2").has_value());
  CHECK_FALSE(parts.agents.connected("").has_value());
  CHECK(parts.agents.key_of(AgentId{1}) == "host1");
  CHECK(parts.agents.remove(AgentId{1}).store_port == 4711);
  parts.agents.add(AgentId{5}, Hello{});
  CHECK(parts.agents.key_of(AgentId{5}) == "#5");
  CHECK(name_of(Hello{}) == "a node");
}

}  // namespace agents_test
