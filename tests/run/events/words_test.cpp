#include "run/events/words.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace words_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("ranks are named with their nodes when there are several") {
  auto one = policy_for(8).node_of_rank;
  auto two = policy_for(8, 0, 4).node_of_rank;
  CHECK(name_ranks(ranks({3}), one) == "rank 3");
  CHECK(name_ranks(ranks({5, 7}), one) == "ranks 5, 7");
  CHECK(name_ranks(ranks({5, 7}), two) == "ranks 5, 7 (node 1)");
  CHECK(name_ranks(ranks({1, 5, 7}), two) == "ranks 1 (node 0), 5, 7 (node 1)");
  CHECK(name_ranks(ranks({1}), {}) == "rank 1");
}

TEST_CASE("signals have names") {
  CHECK(signal_name(SIGTERM) == "SIGTERM");
  CHECK(signal_name(63) == "signal 63");
}

TEST_CASE("long text is cut between characters") {
  CHECK(shorten("short", 5) == "short");
  CHECK(shorten("too long", 6) == "too...");
  CHECK(shorten("a\xc3\xa9\xc3\xa9\xc3\xa9", 5) == "a...");
}

TEST_CASE("nodes that have names are called by them") {
  const std::vector<NodeIndex> nodes{{0}, {0}, {1}, {1}};
  CHECK(name_node(NodeIndex{1}, {"hosta", "hostb"}) == "node 1 (hostb)");
  CHECK(name_node(NodeIndex{1}, {}) == "node 1");
  CHECK(name_ranks({Rank{1}, Rank{2}, Rank{3}}, nodes, {"hosta", "hostb"}) ==
        "ranks 1 on node 0 (hosta), 2, 3 on node 1 (hostb)");
}

}  // namespace words_test
