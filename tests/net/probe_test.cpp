#include <boost/asio/ip/tcp.hpp>

#include "ends.hpp"
#include "net/addresses.hpp"

namespace probe_test {

using namespace taas;
using namespace taas::net;

namespace {

struct Probed {
  std::vector<std::string> reached;
  std::string interface;
};

Probed probed(boost::asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port,
              std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  std::optional<Probed> result;
  auto probing = probe(io, std::move(addresses), port, patience, [&](auto reached, auto interface) {
    REQUIRE_FALSE(result);
    result = {std::move(reached), std::move(interface)};
  });
  turn_until(io, [&] { return result.has_value(); });
  return *result;
}

}  // namespace

TEST_CASE("addresses that answer are named in their order, with the way to the first") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {"127.0.0.1", "127.0.0.3"}, .secret = {}});
  const auto result = probed(io, {"127.0.0.3", "127.0.0.2", "nonsense", "127.0.0.1"}, host.listener->port());
  CHECK(result.reached == std::vector<std::string>{"127.0.0.3", "127.0.0.1"});
  CHECK(result.interface == "lo");
}

TEST_CASE("nothing reached, and nothing to reach, are answers") {
  boost::asio::io_context io;
  CHECK(probed(io, {"127.0.0.2", "x"}, 1).reached.empty());
  CHECK(probed(io, {}, 1).interface.empty());
}

TEST_CASE("an address that does not answer costs no more than the patience") {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor full(io, {boost::asio::ip::address_v4::loopback(), 0}, false);
  full.listen(0);
  // A queue of no length takes one connection; the kernel then ignores further ones.
  const auto port = full.local_endpoint().port();
  boost::asio::ip::tcp::socket first(io);
  first.connect({boost::asio::ip::address_v4::loopback(), port});
  CHECK(probed(io, {"127.0.0.1"}, port, std::chrono::milliseconds(50)).reached.empty());
}

TEST_CASE("a probe that is destroyed says nothing") {
  boost::asio::io_context io;
  Host host(io);
  auto probing = probe(io, {"127.0.0.1"}, host.listener->port(), std::chrono::seconds(30), [](auto, auto) { FAIL(); });
  io.run_one();  // it has started
  probing.reset();
  CHECK(probed(io, {"127.0.0.1"}, host.listener->port()).reached.size() == 1);
}

}  // namespace probe_test
