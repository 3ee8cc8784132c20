#include "net/ends.hpp"
#include "net/link.hpp"
#include "net/stranger.hpp"

namespace connect_test {

using namespace taas;
using namespace taas::net;
using std::chrono::milliseconds;

namespace {

using Acceptor = boost::asio::ip::tcp::acceptor;

/// Listens, and never says a word.
Acceptor silent(boost::asio::io_context& io) { return {io, {boost::asio::ip::address_v4::loopback(), 0}}; }

}  // namespace

TEST_CASE("the one address of several that works is found") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {"127.0.0.3"}, .secret = {}});
  End agent(try_connect(io, {.addresses = {"127.0.0.2", "::1", "127.0.0.3", "127.0.0.4"},
                             .port = host.listener->port(),
                             .secret = {}})
                .value());
  CHECK(agent.link->peer_address() == "127.0.0.3");
}

TEST_CASE("an address that hangs does not delay the one that works") {
  boost::asio::io_context io;
  const auto hanging = silent(io);
  Host host(io, {.addresses = {"127.0.0.3"}, .port = hanging.local_endpoint().port(), .secret = {}});
  End agent(try_connect(io, {.addresses = {"127.0.0.1", "127.0.0.3"},
                             .port = host.listener->port(),
                             .secret = {},
                             .patience = std::chrono::hours(1)})
                .value());
  CHECK(agent.link->peer_address() == "127.0.0.3");
}

TEST_CASE("several ways to the same listener make one link that lasts") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3"}, .secret = {}});
  End agent(try_connect(
                io, {.addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3"}, .port = host.listener->port(), .secret = {}})
                .value());
  turn_until(io, [&] { return !host.ends.empty(); });
  for (int i = 0; i < 100; ++i) agent.link->send("hello");
  const auto got = [](const auto& end) { return end->frames.size() == 100; };
  turn_until(io, [&] { return std::count_if(host.ends.begin(), host.ends.end(), got) == 1; });
}

namespace {

/// No part of a name may be so long: no name server is asked, which might be slow or know it.
const std::string kUnknownName(64, 'x');

}  // namespace

TEST_CASE("a name is looked up") {
  boost::asio::io_context io;
  Host host(io);
  CHECK(try_connect(io, {.addresses = {"localhost"}, .port = host.listener->port(), .secret = {}}).has_value());
  CHECK_THAT(failure_of(io, {.addresses = {kUnknownName}, .port = 1, .secret = {}}),
             ContainsSubstring(kUnknownName + " port 1: "));
}

TEST_CASE("a name without an address is told apart from an address where nobody is") {
  boost::asio::io_context io;
  auto unknown = try_connect(io, {.addresses = {kUnknownName}, .port = 1, .secret = {}});
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().system_errno == EADDRNOTAVAIL);
  auto one_is_known = try_connect(io, {.addresses = {kUnknownName, "127.0.0.1"}, .port = 1, .secret = {}});
  REQUIRE_FALSE(one_is_known.has_value());
  CHECK(one_is_known.error().system_errno == 0);
}

TEST_CASE("who learns what a name stands for may want nobody to be called there") {
  for (const auto* name : {"localhost", "127.0.0.1"}) {
    boost::asio::io_context io;
    const Host host(io);
    std::vector<boost::asio::ip::address> found;
    ConnectOptions options{.addresses = {name}, .port = host.listener->port(), .secret = secret()};
    options.on_found = [&found](const auto& addresses) {
      found = addresses;
      return false;
    };
    const auto connecting = connect(io, std::move(options), [](const auto&) { FAIL("nobody was to be called"); });
    turn_until(io, [&found] { return !found.empty(); });
    CHECK(found.front().is_loopback());
    io.restart();
    io.poll();
    CHECK(host.ends.empty());
  }
}

TEST_CASE("each address says why it failed") {
  boost::asio::io_context io;
  CHECK(failure_of(io, {.addresses = {"127.0.0.1", "127.0.0.2"}, .port = 1, .secret = {}}) ==
        "127.0.0.1 port 1: connection refused; 127.0.0.2 port 1: connection refused");
  CHECK(failure_of(io, {.addresses = {""}, .port = 1, .secret = {}}) != "");
}

TEST_CASE("a host that accepts and says nothing is given up in time") {
  boost::asio::io_context io;
  const auto acceptor = silent(io);
  const auto port = acceptor.local_endpoint().port();
  CHECK(failure_of(
            io, {.addresses = {"127.0.0.1", "127.0.0.2"}, .port = port, .secret = {}, .patience = milliseconds(100)}) ==
        "127.0.0.1 port " + std::to_string(port) + ": timed out; 127.0.0.2 port " + std::to_string(port) +
            ": connection refused");
}

TEST_CASE("a program that is no taas-run is told apart from a wrong secret") {
  boost::asio::io_context io;
  auto acceptor = silent(io);
  boost::asio::ip::tcp::socket other(io);
  acceptor.async_accept(other, [&other](const auto&) {
    boost::asio::write(other, boost::asio::buffer(std::string("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")));
  });
  CHECK_THAT(failure_of(io, {.addresses = {}, .port = acceptor.local_endpoint().port(), .secret = {}}),
             ContainsSubstring("what answers there is not taas-run"));
}

TEST_CASE("an attempt that is destroyed says nothing, at whatever point") {
  boost::asio::io_context io;
  Host host(io);
  for (int turns = 0; turns < 20; ++turns) {
    auto connecting = connect(io, {{"127.0.0.1", "127.0.0.2"}, host.listener->port(), secret(), milliseconds(5000)},
                              [turns](auto) { CHECK(turns >= 3); });
    io.restart();
    for (int i = 0; i < turns; ++i) io.run_one_for(milliseconds(1));
  }
  CHECK(try_connect(io, {.addresses = {}, .port = host.listener->port(), .secret = {}}).has_value());
}

TEST_CASE("an attempt may be destroyed, and another one begun, by its own callback") {
  boost::asio::io_context io;
  Host host(io);
  std::unique_ptr<Connecting> connecting;
  std::unique_ptr<Link> link;
  connecting = connect(io, {{"127.0.0.1"}, 1, secret()}, [&](auto failed) {
    CHECK_FALSE(failed.has_value());
    connecting =
        connect(io, {{"127.0.0.1"}, host.listener->port(), secret()}, [&link](auto made) { link = std::move(*made); });
  });
  turn_until(io, [&] { return link != nullptr; });
}

}  // namespace connect_test
