#include "net/held_ports.hpp"

#include <algorithm>
#include <set>

#include "ends.hpp"

namespace held_ports_test {

using namespace taas;
using namespace taas::net;
using boost::asio::ip::tcp;

namespace {

/// A server as frameworks open one: SO_REUSEADDR, then the port it was told.
boost::system::error_code listen(tcp::acceptor& server, const std::string& address, std::uint16_t port,
                                 bool reuse_address = true) {
  const tcp::endpoint endpoint(boost::asio::ip::make_address(address), port);
  boost::system::error_code status;
  server.open(endpoint.protocol());
  server.set_option(tcp::acceptor::reuse_address(reuse_address));
  if (server.bind(endpoint, status)) return status;
  return server.listen(8, status);
}

}  // namespace

TEST_CASE("held ports are different ones, and their servers may open them, again and again") {
  boost::asio::io_context io;
  const auto held = HeldPorts::hold(io, "127.0.0.1", 8);
  REQUIRE(held.has_value());
  CHECK(std::set<int>(held->numbers().begin(), held->numbers().end()).size() == 8);
  for (auto address : {"127.0.0.1", "0.0.0.0", "::", "127.0.0.1"}) {
    for (auto port : held->numbers()) {
      tcp::acceptor server(io);
      CHECK_FALSE(listen(server, address, port));
    }
  }
}

TEST_CASE("nobody hears a connection to a port that is only held") {
  boost::asio::io_context io;
  const auto held = HeldPorts::hold(io, "127.0.0.1", 1);
  tcp::socket caller(io);
  boost::system::error_code status;
  caller.connect({boost::asio::ip::address_v4::loopback(), held->numbers().front()}, status);
  CHECK(status == boost::asio::error::connection_refused);
}

TEST_CASE("a held port is not free for others: they do not come upon it by chance") {
  boost::asio::io_context io;
  const auto held = HeldPorts::hold(io, "127.0.0.1", 1);
  tcp::acceptor server(io);
  CHECK(listen(server, "127.0.0.1", held->numbers().front(), false) == boost::asio::error::address_in_use);
  const auto more = HeldPorts::hold(io, "127.0.0.1", 500);
  const auto& numbers = more.value().numbers();
  CHECK(std::find(numbers.begin(), numbers.end(), held->numbers().front()) == numbers.end());
}

TEST_CASE("ports are held on a numeric address of this machine, none if none are wanted") {
  boost::asio::io_context io;
  CHECK(HeldPorts::hold(io, "127.0.0.1", 0).value().numbers().empty());
  CHECK_THAT(HeldPorts::hold(io, "localhost", 1).error().message, ContainsSubstring("'localhost'"));
  CHECK_THAT(HeldPorts::hold(io, "192.0.2.1", 3).error().message,
             ContainsSubstring("cannot hold 3 ports on 192.0.2.1"));
}

}  // namespace held_ports_test
