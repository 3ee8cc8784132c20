#include "net/stranger.hpp"

namespace strangers_test {

using namespace taas;
using namespace taas::net;
using std::chrono::milliseconds;

namespace {

/// The host serves an agent as if nothing had happened.
void check_works(boost::asio::io_context& io, Host& host) {
  const auto links = host.ends.size();
  End agent(try_connect(io, {.addresses = {}, .port = host.listener->port(), .secret = {}}).value());
  agent.link->send("hello");
  turn_until(io, [&] { return host.ends.size() == links + 1 && host.ends.back()->frames.size() == 1; });
}

/// The first message of a TLS 1.3 handshake as far as its length and version: the rest never comes.
const std::string kHalfHello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

}  // namespace

TEST_CASE("garbage is dropped at once and without an effect") {
  boost::asio::io_context io;
  Host host(io);
  const std::string garbage =
      GENERATE(std::string(1 << 20, '\xff'), std::string(1 << 20, '\0'), std::string("GET / HTTP/1.1\r\n\r\n"),
               std::string("\0\0\0\2{}", 6), std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10));
  Stranger stranger(io, host.listener->port());
  stranger.say(garbage);
  stranger.wait_until_turned_away();
  CHECK(host.ends.empty());
  check_works(io, host);
}

TEST_CASE("who says nothing, or stops halfway, is closed at the deadline") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {}, .secret = {}, .patience = milliseconds(50)});
  Stranger silent(io, host.listener->port());
  Stranger halting(io, host.listener->port());
  halting.say(kHalfHello);
  silent.wait_until_turned_away();
  halting.wait_until_turned_away();
  CHECK(halting.heard().empty());
  CHECK(host.ends.empty());
}

TEST_CASE("a proven link has no deadline") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {}, .secret = {}, .patience = milliseconds(2000)});
  End agent(try_connect(io, {.addresses = {}, .port = host.listener->port(), .secret = {}}).value());
  turn_until(io, [&] { return host.ends.size() == 1; });
  Stranger clock(io, host.listener->port());
  clock.wait_until_turned_away();
  agent.link->send("still here");
  turn_until(io, [&] { return host.ends.front()->frames.size() == 1; });
  CHECK_FALSE(agent.closed);
}

TEST_CASE("a crowd of silent strangers keeps no agent out") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {},
                 .secret = {},
                 .patience = std::chrono::hours(1),
                 .crowded_patience = milliseconds(10),
                 .most_strangers = 8});
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<Stranger>(io, host.listener->port()));
  check_works(io, host);
  const auto still_here =
      std::count_if(crowd.begin(), crowd.end(), [](const auto& one) { return !one->turned_away(); });
  CHECK(still_here <= 8);
}

TEST_CASE("a few strangers are let be while there is room") {
  boost::asio::io_context io;
  Host host(io,
            {.addresses = {}, .secret = {}, .patience = std::chrono::hours(1), .crowded_patience = milliseconds(0)});
  Stranger stranger(io, host.listener->port());
  check_works(io, host);
  CHECK_FALSE(stranger.turned_away());
}

}  // namespace strangers_test
