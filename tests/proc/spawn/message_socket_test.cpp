#include "proc/spawn/message_socket.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "catch.hpp"

namespace message_socket_test {

using namespace taas;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 10s;

TEST_CASE("messages stay apart, and the end is an empty one") {
  auto sockets = make_message_sockets();
  REQUIRE(sockets.has_value());
  auto& [one, other] = *sockets;
  REQUIRE(send_message(one, "first", {}, kPatience).has_value());
  REQUIRE(send_message(one, "second", {}, kPatience).has_value());
  one.reset();
  CHECK(*receive_message(other, kPatience) == "first");
  CHECK(*receive_message(other, kPatience) == "second");
  CHECK(receive_message(other, kPatience)->empty());
}

TEST_CASE("silence ends with the patience, and a peer that is gone is an error") {
  auto sockets = make_message_sockets();
  REQUIRE(sockets.has_value());
  auto& [one, other] = *sockets;
  CHECK(receive_message(one, 1ms).error().system_errno == ETIMEDOUT);
  other.reset();
  CHECK(send_message(one, "text", {}, kPatience).error().system_errno == EPIPE);
}

}  // namespace

}  // namespace message_socket_test
