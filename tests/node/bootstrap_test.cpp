#include "node/bootstrap.hpp"

#include "catch.hpp"

namespace bootstrap_test {

using namespace taas;
using namespace taas::node;

TEST_CASE("what an agent is started with is one line, and comes back as it was") {
  Bootstrap bootstrap;
  bootstrap.run_id = "run \"7\"";
  bootstrap.key = std::string(64, 'a');
  bootstrap.addresses = {"10.0.0.1", "fd00::1"};
  bootstrap.port = 29400;
  bootstrap.order = 3;
  bootstrap.name = "node3";
  auto line = print_bootstrap(bootstrap);
  CHECK(line.find('\n') == line.size() - 1);
  auto read = parse_bootstrap(line);
  REQUIRE(read.has_value());
  CHECK(read->run_id == bootstrap.run_id);
  CHECK(read->addresses == bootstrap.addresses);
  CHECK(read->port == 29400);
  CHECK(read->order == 3);
  CHECK(read->name == "node3");
}

TEST_CASE("anything else is an error that does not repeat it") {
  for (const std::string text : {"", "secret", "{\"key\":\"secret\"}", "[1]"}) {
    auto read = parse_bootstrap(text);
    REQUIRE_FALSE(read.has_value());
    CHECK_THAT(read.error().message, !ContainsSubstring("secret"));
  }
}

}  // namespace bootstrap_test
