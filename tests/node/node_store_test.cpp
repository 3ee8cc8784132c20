#include "node/node_store.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>

#include "catch.hpp"

namespace node_store_test {

using namespace taas;
using boost::asio::ip::tcp;
using node::NodeStore;

namespace {

NodeStore::Callbacks no_callbacks() {
  return {[](Rank) {}, [] {}, [](const std::string&) {}};
}

/// What becomes of a client that comes now: the server closes it at once, or waits for what it asks for.
bool is_turned_away(boost::asio::io_context& io, std::uint16_t port) {
  tcp::socket client(io);
  client.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  bool closed = false;
  char byte = 0;
  boost::asio::async_read(client, boost::asio::buffer(&byte, 1),
                          [&](boost::system::error_code error, std::size_t) { closed = error.failed(); });
  for (int turn = 0; turn < 1000 && !closed; ++turn) io.poll_one();
  const bool turned_away = closed;
  client.close();
  io.poll();
  return turned_away;
}

}  // namespace

TEST_CASE("a node without addresses has no store") {
  boost::asio::io_context io;
  NodeStore store;
  REQUIRE(store.open(io, {}, 0, 1000, no_callbacks()).has_value());
  CHECK(store.port() == 0);
  store.begin_generation("127.0.0.1");
  store.rest();
  store.close();
}

TEST_CASE("until its generation begins, and after it, a store serves nobody") {
  boost::asio::io_context io;
  NodeStore store;
  REQUIRE(store.open(io, {"127.0.0.1"}, 0, 1000, no_callbacks()).has_value());
  CHECK(is_turned_away(io, store.port()));
  store.begin_generation("127.0.0.1");
  CHECK_FALSE(is_turned_away(io, store.port()));
  store.rest();
  CHECK(is_turned_away(io, store.port()));
}

TEST_CASE("the port is held until the store is closed, and stays known") {
  boost::asio::io_context io;
  NodeStore store;
  REQUIRE(store.open(io, {"127.0.0.1"}, 0, 1000, no_callbacks()).has_value());
  const auto port = store.port();
  NodeStore second;
  CHECK_FALSE(second.open(io, {"127.0.0.1"}, port, 1000, no_callbacks()).has_value());
  store.close();
  CHECK(store.port() == port);
  CHECK(second.open(io, {"127.0.0.1"}, port, 1000, no_callbacks()).has_value());
}

}  // namespace node_store_test
