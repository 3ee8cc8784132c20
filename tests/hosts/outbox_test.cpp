#include "hosts/outbox.hpp"

#include <boost/asio/io_context.hpp>

#include "catch.hpp"

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
