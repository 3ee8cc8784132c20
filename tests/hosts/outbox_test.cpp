#include "hosts/outbox.hpp"

#include <boost/asio/io_context.hpp>

#include "catch.hpp"
#include "net/frames.hpp"
#include "run/wire.hpp"

namespace outbox_test {

using namespace taas;
using namespace taas::hosts;

namespace {

run::OutputText line(const std::string& text) { return {Rank{0}, false, false, text, Instant{}}; }

}  // namespace

TEST_CASE("lines of one turn are one message, told before what comes after them") {
  boost::asio::io_context io;
  std::vector<run::AgentMessage> told;
  Outbox outbox(io, [&told](run::AgentMessage message) { told.push_back(std::move(message)); });
  outbox.add(line("a"));
  outbox.add(line("b"));
  CHECK(told.empty());
  outbox.say(run::Ready{7});
  REQUIRE(told.size() == 2);
  CHECK(std::get<run::Output>(told[0]).lines.size() == 2);
  CHECK(std::get<run::Ready>(told[1]).store_port == 7);
  outbox.add(line("c"));
  io.run();
  REQUIRE(told.size() == 3);
  CHECK(std::get<run::Output>(told[2]).lines.front().text == "c");
}

TEST_CASE("long lines of one turn go out in messages that a link takes") {
  boost::asio::io_context io;
  std::size_t lines = 0;
  std::size_t longest = 0;
  Outbox outbox(io, [&](const run::AgentMessage& message) {
    lines += std::get<run::Output>(message).lines.size();
    longest = std::max(longest, run::encode(message).size());
  });
  for (int i = 0; i < 300; ++i) outbox.add(line(std::string(64 * 1024, '\1')));  // six bytes each in JSON
  io.run();
  CHECK(lines == 300);
  CHECK(longest < net::kMostFrameBytes);
}

TEST_CASE("an outbox that is gone tells nothing") {
  boost::asio::io_context io;
  int told = 0;
  {
    Outbox outbox(io, [&told](const run::AgentMessage&) { ++told; });
    outbox.add(line("a"));
  }
  io.run();
  CHECK(told == 0);
}

}  // namespace outbox_test
