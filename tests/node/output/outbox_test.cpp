#include "node/output/outbox.hpp"

#include <boost/asio/io_context.hpp>

#include "catch.hpp"
#include "net/frames.hpp"
#include "run/messages/wire.hpp"

namespace outbox_test {

using namespace taas;
using namespace taas::node;

namespace {

run::OutputText line(const std::string& text) { return {Rank{0}, false, false, text, Instant{}}; }

/// An outbox, and what it told.
struct Told {
  explicit Told(bool in_process = false)
      : outbox(io, {in_process, [this](run::AgentMessage message) { messages.push_back(std::move(message)); },
                    [this](bool now) { crowded.push_back(now); }}) {}

  void turn() {
    io.restart();
    io.poll();
  }

  [[nodiscard]] std::size_t lines() const {
    std::size_t count = 0;
    for (const auto& message : messages) {
      if (const auto* output = std::get_if<run::Output>(&message)) count += output->lines.size();
    }
    return count;
  }

  /// As a console that takes everything.
  void show_all() {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (std::holds_alternative<run::Output>(messages[i])) outbox.shown();
    }
  }

  boost::asio::io_context io;
  std::vector<run::AgentMessage> messages;
  std::vector<bool> crowded;
  Outbox outbox;
};

constexpr std::size_t kLong = 16 * 1024;

}  // namespace

TEST_CASE("lines of one turn are one message, told before what comes after them") {
  Told told;
  told.outbox.add(line("a"));
  told.outbox.add(line("b"));
  CHECK(told.messages.empty());
  told.outbox.say(run::Ready{7});
  REQUIRE(told.messages.size() == 2);
  CHECK(std::get<run::Output>(told.messages[0]).lines.size() == 2);
  CHECK(std::get<run::Ready>(told.messages[1]).store_port == 7);
  told.outbox.add(line("c"));
  told.turn();
  REQUIRE(told.messages.size() == 3);
  CHECK(std::get<run::Output>(told.messages[2]).lines.front().text == "c");
}

TEST_CASE("long lines of one turn go out in messages that a link takes") {
  Told told;
  for (int i = 0; i < 300; ++i) told.outbox.add(line(std::string(64 * 1024, '\1')));  // six bytes each in JSON
  told.turn();
  told.show_all();
  CHECK(told.lines() == 300);
  std::size_t longest = 0;
  for (const auto& message : told.messages) longest = std::max(longest, run::encode(message).size());
  CHECK(longest < net::kMostFrameBytes);
}

TEST_CASE("lines wait for the console, and everything else passes them") {
  Told told;
  for (int i = 0; i < 1000; ++i) told.outbox.add(line(std::string(kLong, 'x')));
  told.turn();
  auto first = told.lines();
  CHECK(first * kLong <= 128 * 1024);
  CHECK(told.crowded == std::vector{true});
  told.outbox.say(run::Ready{7});
  CHECK(std::holds_alternative<run::Ready>(told.messages.back()));
  CHECK(told.lines() == first);
  told.show_all();
  told.turn();
  CHECK(told.lines() == 1000);
  CHECK(told.crowded == std::vector{true, false});
}

TEST_CASE("the last word comes after the last line") {
  Told told;
  for (int i = 0; i < 100; ++i) told.outbox.add(line(std::string(kLong, 'x')));
  told.outbox.say_last(run::OutputSettled{});
  told.turn();
  CHECK_FALSE(std::holds_alternative<run::OutputSettled>(told.messages.back()));
  told.show_all();
  CHECK(told.lines() == 100);
  CHECK(std::holds_alternative<run::OutputSettled>(told.messages.back()));
}

TEST_CASE("a last word to a console that takes nothing says how many lines are left out") {
  Told told;
  for (int i = 0; i < 100; ++i) told.outbox.add(line(std::string(kLong, 'x')));
  told.outbox.say_last(run::OutputSettled{});
  told.io.run();
  REQUIRE(std::holds_alternative<run::OutputSettled>(told.messages.back()));
  const auto& remark = std::get<run::Remark>(told.messages[told.messages.size() - 2]);
  CHECK(remark.text.starts_with(std::to_string(100 - told.lines()) + " lines of output were not shown"));
}

TEST_CASE("a new link begins with nothing on its way") {
  Told told;
  for (int i = 0; i < 100; ++i) told.outbox.add(line(std::string(kLong, 'x')));
  told.turn();
  told.outbox.begin_anew();
  auto before = told.lines();
  told.outbox.add(line("new"));
  told.turn();
  CHECK(told.lines() == before + 1);
  CHECK(told.crowded == std::vector{true, false});
}

TEST_CASE("an outbox that is gone tells nothing") {
  boost::asio::io_context io;
  int told = 0;
  {
    Outbox outbox(io, {false, [&told](const run::AgentMessage&) { ++told; }});
    outbox.add(line("a"));
  }
  io.run();
  CHECK(told == 0);
}

}  // namespace outbox_test
