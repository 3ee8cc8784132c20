#include "net/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>

#include "catch.hpp"

namespace sockets_test {

using namespace taas::net;
using boost::asio::ip::tcp;

TEST_CASE("after a cut of the network a link sends again at even intervals") {
  boost::asio::io_context io;
  tcp::socket socket(io);
  REQUIRE_FALSE(open(socket, boost::asio::ip::make_address("127.0.0.1")));
  int even = 0;
  socklen_t size = sizeof even;
  REQUIRE(::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &even, &size) == 0);
  CHECK(even == 1);
}

}  // namespace sockets_test
