#include "launch/output/console_queue.hpp"

#include <string>
#include <vector>

#include "catch.hpp"

namespace console_queue_test {

using namespace taas;
using namespace taas::launch;

namespace {

struct Shown {
  Shown()
      : queue(io, {[this](const run::Output& output) { lines += output.lines.front().text; },
                   [this](run::AgentId from) { agents.push_back(from.value); }}) {}

  void add(int agent, const std::string& text) {
    queue.add(run::AgentId{agent}, {{{Rank{0}, false, false, text, Instant{}}}});
  }

  boost::asio::io_context io;
  std::string lines;
  std::vector<int> agents;
  ConsoleQueue queue;
};

}  // namespace

TEST_CASE("one message is shown in a turn, so that others have theirs") {
  Shown shown;
  shown.add(0, "a");
  shown.add(1, "b");
  CHECK(shown.lines.empty());
  shown.io.run_one();
  CHECK(shown.lines == "a");
  shown.io.run();
  CHECK(shown.lines == "ab");
  CHECK(shown.agents == std::vector{0, 1});
}

TEST_CASE("nothing is shown while the console is held, and nobody is told that it was") {
  Shown shown;
  shown.queue.hold(true);
  shown.add(0, "a");
  shown.queue.keep_order();
  shown.io.run();
  CHECK(shown.agents.empty());
  shown.queue.hold(false);
  shown.io.restart();
  shown.io.run();
  CHECK(shown.lines == "a");
}

TEST_CASE("what came before something else is shown before it, unless that is much") {
  Shown shown;
  shown.add(0, "a");
  shown.add(0, "b");
  shown.queue.keep_order();
  CHECK(shown.lines == "ab");
  for (int i = 0; i < 1000; ++i) shown.add(0, "c");
  shown.queue.keep_order();
  CHECK(shown.lines == "ab");
  shown.queue.show_all();
  CHECK(shown.lines.size() == 1002);
}

}  // namespace console_queue_test
