#include "run/agent/node_generation.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace node_generation_test {

using namespace taas;
using namespace taas::run;

namespace {

StartRanks order(int generation) {
  StartRanks made;
  made.generation = Generation{generation};
  return made;
}

template <class Message>
bool is(const std::optional<CoordinatorMessage>& message) {
  return message && std::holds_alternative<Message>(*message);
}

}  // namespace

TEST_CASE("a newer generation is started when nothing lives") {
  NodeGeneration node;
  CHECK(is<StartRanks>(node.start(order(1), at_ms(0))));
  CHECK(node.lives(Generation{1}));
  CHECK(node.end(Generation{1}));
  CHECK_FALSE(node.start(order(1), at_ms(0)).has_value());
  CHECK_FALSE(node.start(order(0), at_ms(0)).has_value());
}

TEST_CASE("a generation is starting until all of its ranks run, and while a newer one waits") {
  NodeGeneration node;
  auto two = order(0);
  two.shares = {{NodeIndex{0}, Rank{0}, 2}};
  node.start(two, at_ms(0));
  node.spawned(Generation{0});
  CHECK(node.is_starting());
  node.spawned(Generation{0});
  CHECK_FALSE(node.is_starting());
  node.spawned(Generation{7});
  node.start(order(1), at_ms(0));
  CHECK(node.is_starting());
  node.end(Generation{0});
  node.begin_next();
  CHECK_FALSE(node.is_starting());
}

TEST_CASE("a newer generation waits until the older one is gone, which is killed again and again") {
  NodeGeneration node;
  node.start(order(0), at_ms(0));
  CHECK(is<KillGeneration>(node.start(order(1), at_ms(0))));
  CHECK_FALSE(node.lives(Generation{1}));
  CHECK(node.next_kill() == at_ms(1000));
  CHECK(node.take_due_kill(at_ms(1000)));
  CHECK(node.kill(at_ms(1000)).generation == Generation{0});
  CHECK(node.end(Generation{0}));
  CHECK_FALSE(node.next_kill().has_value());
  CHECK(node.begin_next()->generation == Generation{1});
  CHECK(node.lives(Generation{1}));
  CHECK_FALSE(node.begin_next().has_value());
}

TEST_CASE("a generation that ended before it began is not begun") {
  NodeGeneration node;
  node.start(order(0), at_ms(0));
  node.start(order(1), at_ms(0));
  node.forget_next(Generation{1});
  CHECK(node.end(Generation{0}));
  CHECK_FALSE(node.begin_next().has_value());
  CHECK_FALSE(node.start(order(1), at_ms(0)).has_value());
}

TEST_CASE("the end of another generation changes nothing") {
  NodeGeneration node;
  node.start(order(3), at_ms(0));
  CHECK_FALSE(node.end(Generation{2}));
  CHECK(node.lives(Generation{3}));
}

}  // namespace node_generation_test
