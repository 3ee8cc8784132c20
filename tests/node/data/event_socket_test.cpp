#include "node/data/event_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <vector>

#include "base/fd.hpp"
#include "catch.hpp"
#include "node/process/private_folder.hpp"

namespace event_socket_test {

using namespace taas;
using namespace taas::node;

namespace {

void send_to(const std::string& path, const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto sent = ::sendto(socket.get(), text.data(), text.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&address),
                       sizeof address);
  REQUIRE(sent == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("datagrams are passed on, each whole") {
  boost::asio::io_context io;
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  auto path = folder->path() + "/events";
  std::vector<std::string> heard;
  auto socket = EventSocket::open(io, path, [&](std::string_view text) { heard.emplace_back(text); });
  REQUIRE(socket.has_value());
  send_to(path, "one");
  send_to(path, "two");
  while (heard.size() < 2) io.run_one();
  send_to(path, "three");
  socket->drain();
  CHECK(heard == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("a destroyed socket tells nothing, and one whose path is too long is refused") {
  boost::asio::io_context io;
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  auto path = folder->path() + "/events";
  int heard = 0;
  {
    auto socket = EventSocket::open(io, path, [&](std::string_view) { ++heard; });
    REQUIRE(socket.has_value());
    send_to(path, "one");
  }
  io.run();
  CHECK(heard == 0);
  CHECK_FALSE(EventSocket::open(io, "/tmp/" + std::string(200, 'x'), [](std::string_view) {}).has_value());
}

}  // namespace event_socket_test
