#include "net/bind.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "ends.hpp"

namespace bind_test {

using namespace taas;
using namespace taas::net;

TEST_CASE("all addresses get the same port, and no child inherits a listener") {
  boost::asio::io_context io;
  const auto acceptors = bind_all(io, {.addresses = {"127.0.0.1", "127.0.0.2", "::1"}});
  REQUIRE(acceptors.has_value());
  REQUIRE(acceptors->size() == 3);
  for (const auto& acceptor : *acceptors) {
    CHECK(acceptor.local_endpoint().port() == acceptors->front().local_endpoint().port());
    auto& socket = const_cast<Acceptor&>(acceptor);
    CHECK((::fcntl(socket.native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("a port that is taken is refused by name") {
  boost::asio::io_context io;
  const auto first = bind_all(io, {.addresses = {"127.0.0.1"}});
  const auto port = first.value().front().local_endpoint().port();
  const auto second = bind_all(io, {.addresses = {"127.0.0.1"}, .port = port});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::kUnavailable);
  CHECK_THAT(second.error().message, ContainsSubstring(fmt::format("127.0.0.1 port {} is already in use", port)));
}

TEST_CASE("an address must be a numeric one of this machine") {
  boost::asio::io_context io;
  CHECK(bind_all(io, BindRequest{}).error().code == ErrorCode::kUsage);
  CHECK_THAT(bind_all(io, {.addresses = {"localhost"}}).error().message, ContainsSubstring("'localhost'"));
  CHECK_THAT(bind_all(io, {.addresses = {"192.0.2.1"}}).error().message, ContainsSubstring("192.0.2.1"));
}

TEST_CASE("an address that this machine lacks may be left out, but not all of them") {
  boost::asio::io_context io;
  const auto bound = bind_all(io, {.addresses = {"192.0.2.1", "127.0.0.1"}, .some_suffice = true});
  REQUIRE(bound.has_value());
  CHECK(bound->size() == 1);
  const auto none = bind_all(io, {.addresses = {"192.0.2.1"}, .some_suffice = true, .purpose = "for the store"});
  CHECK_THAT(none.error().message, ContainsSubstring("192.0.2.1 port 0 for the store"));
}

}  // namespace bind_test
