#include "store/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <thread>

#include "store/client.hpp"

namespace server_test {

using namespace taas;
using namespace taas::store;

namespace {

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

/// Waits until the server has seen a change that it sees by itself, such as a client that hung up.
template <class Condition>
void eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(Client::kDeadlineSeconds);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("clients share what they set") {
  RunningServer server;
  Client a(server.port());
  Client b(server.port());
  CHECK(a.answers());
  a.send(wire::set("k", "value"));
  CHECK(a.answers());
  CHECK(b.ask(wire::get("k"), 13) == wire::blob("value"));
  CHECK(server.connections() == 2);
}

TEST_CASE("a client that waits is released by another, and cancels without harm") {
  RunningServer server;
  Client a(server.port());
  Client b(server.port());
  a.send(wire::wait("k"));
  CHECK(a.answers());
  b.send(wire::set("k", "1"));
  CHECK(a.receive(1) == kZero);
  a.send(wire::wait("never"));
  CHECK(a.ask(wire::request(wire::kCancelWait), 1) == kOne);
  b.send(wire::set("never", "1"));
  CHECK(b.answers());
  CHECK(a.answers());
}

TEST_CASE("requests that come together are answered in order") {
  RunningServer server;
  Client a(server.port());
  std::string requests;
  std::string answers;
  for (int i = 0; i < 20000; ++i) {
    requests += wire::set("k", std::to_string(i)) + wire::get("k");
    answers += wire::blob(std::to_string(i));
  }
  a.send(requests);
  CHECK(a.receive(answers.size()) == answers);
}

TEST_CASE("a large value passes whole") {
  RunningServer server;
  Client a(server.port());
  const std::string value(24 * 1024 * 1024 + 7, 'x');
  a.send(wire::set("big", value));
  CHECK(a.ask(wire::get("big"), 8 + value.size()) == wire::blob(value));
  CHECK(a.answers());
}

TEST_CASE("garbage closes its own connection only, and is reported") {
  RunningServer server;
  Client good(server.port());
  CHECK(good.answers());
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.1\r\n\r\n",
      std::string(100000, '\xFF'),
      wire::ping(1),
      wire::greeting() + "\x7F",
      wire::greeting() + wire::greeting(),
      wire::greeting() + wire::request(wire::kGet, wire::number(~0ULL)),
      wire::greeting() + wire::request(wire::kMultiSet, wire::number(1ULL << 40)),
      wire::greeting() + wire::set("t", "text") + wire::blobs(wire::kAdd, {"t"}) + wire::number(1),
  };
  for (const auto& bytes : garbage) {
    Client bad(server.port(), bytes);
    CHECK(bad.is_closed());
  }
  CHECK(good.answers());
  CHECK(server.connections() == 1);
  CHECK(server.refused().size() == garbage.size());
  CHECK_THAT(server.refused().front(), ContainsSubstring("unknown type 71"));
}

TEST_CASE("a client that hangs up within a request, or while it waits, leaves nothing behind") {
  RunningServer server;
  Client good(server.port());
  {
    Client half(server.port());
    half.send(wire::set("key", "value").substr(0, 14));
    Client waiting(server.port());
    waiting.send(wire::wait("later"));
    CHECK(waiting.answers());
  }
  eventually([&] { return server.connections() == 1; });
  good.send(wire::set("later", "1"));
  CHECK(good.answers());
  CHECK(good.ask(wire::request(wire::kCountKeys), 8) == wire::number(1));
}

TEST_CASE("a generation begins with no keys and no connections on the same port") {
  RunningServer server;
  Client old(server.port());
  old.send(wire::set("k", "old"));
  CHECK(old.answers());
  server.begin_generation();
  CHECK(old.is_closed());
  CHECK(server.connections() == 0);
  Client fresh(server.port());
  CHECK(fresh.ask(wire::request(wire::kCountKeys), 8) == wire::number(0));
}

TEST_CASE("a server that rests keeps its port and serves nobody until a generation begins") {
  RunningServer server;
  Client old(server.port());
  old.send(wire::set("k", "old"));
  CHECK(old.answers());
  server.rest();
  CHECK(old.is_closed());
  CHECK(Client(server.port()).is_closed());
  server.begin_generation();
  Client fresh(server.port());
  CHECK(fresh.ask(wire::request(wire::kCountKeys), 8) == wire::number(0));
}

TEST_CASE("who comes to another address than the one that was chosen is closed") {
  RunningServer server({.addresses = {"127.0.0.1", "127.0.0.2"}});
  server.begin_generation("127.0.0.2");
  CHECK(Client(server.port()).is_closed());
  server.begin_generation("127.0.0.1");
  CHECK(Client(server.port()).answers());
}

TEST_CASE("each rank that joins is told once a generation") {
  RunningServer server;
  const std::vector<Rank> once = {Rank{3}, Rank{0}};
  const std::vector<Rank> twice = {Rank{3}, Rank{0}, Rank{3}, Rank{0}};
  for (const auto& expected : {once, twice}) {
    Client client(server.port());
    for (const auto* key : {"/default_pg/0//cpu//0/3", "/k", "/default_pg/0//cpu//0/3", "/default_pg/0//cpu//0/0",
                            "/default_pg/0//1//cpu//0/1"}) {
      client.send(wire::set(key, "address"));
    }
    CHECK(client.answers());
    CHECK(server.joined() == expected);
    server.begin_generation();
  }
}

TEST_CASE("the first request of a generation tells that the store was reached, a connection alone does not") {
  RunningServer server;
  Client silent(server.port());
  for (int generation = 0; generation < 2; ++generation) {
    Client first(server.port());
    Client second(server.port());
    CHECK(server.reached() == generation);
    first.send(wire::set("default_pg/0//cuda//0", "what NCCL's rank 0 tells the others"));
    CHECK(first.answers());
    CHECK(second.answers());
    CHECK(server.reached() == generation + 1);
    server.begin_generation();
  }
  CHECK(server.joined().empty());
}

TEST_CASE("a generation may begin while a rank's joining is told") {
  boost::asio::io_context io;
  std::unique_ptr<Server> server;
  int joined = 0;
  const auto on_joined = [&](Rank) {
    ++joined;
    server->begin_generation();
    io.stop();
  };
  server = Server::listen(io, {}, {.on_joined = on_joined}).value();
  Client client(server->port());
  client.send(wire::set("/default_pg/0//cpu//0/0", "1") + wire::ping(1) + wire::set("/default_pg/0//cpu//0/1", "1"));
  io.run();
  CHECK(joined == 1);
  CHECK(client.is_closed());
  CHECK(server->connections() == 0);
}

TEST_CASE("a port that is taken is refused with what to do") {
  RunningServer server;
  boost::asio::io_context io;
  const auto second = Server::listen(io, {.port = server.port()}, {});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::kUnavailable);
  CHECK_THAT(second.error().message, ContainsSubstring(fmt::format("port {}", server.port())));
  CHECK_THAT(second.error().message, ContainsSubstring("--master-port"));
}

TEST_CASE("a port is free again when its server is gone") {
  std::uint16_t port = 0;
  std::optional<Client> client;  // outlives the server, whose side of the connection then lingers
  {
    RunningServer server;
    port = server.port();
    client.emplace(port);
    CHECK(client->answers());
  }
  boost::asio::io_context io;
  CHECK(Server::listen(io, {.port = port}, {}).has_value());
}

TEST_CASE("an address must be a numeric one of this machine") {
  boost::asio::io_context io;
  const auto name = Server::listen(io, {.addresses = {"localhost"}}, {});
  REQUIRE_FALSE(name.has_value());
  CHECK(name.error().code == ErrorCode::kUsage);
  CHECK_THAT(name.error().message, ContainsSubstring("'localhost'"));
  const auto foreign = Server::listen(io, {.addresses = {"192.0.2.1"}}, {});
  REQUIRE_FALSE(foreign.has_value());
  CHECK_THAT(foreign.error().message, ContainsSubstring("192.0.2.1"));
  CHECK(Server::listen(io, {.addresses = {"127.0.0.1", "192.0.2.1"}}, {}).has_value());  // one is enough
}

TEST_CASE("no child inherits a socket of the server") {
  RunningServer server;
  Client client(server.port());
  CHECK(client.answers());
  for (int fd = 3; fd < 64; ++fd) {
    sockaddr_in6 address{};
    socklen_t size = sizeof(address);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (ntohs(address.sin6_port) != server.port()) continue;
    INFO("descriptor " << fd);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("IPv6 loopback is served on the same port") {
  RunningServer server;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(server.port());
  address.sin6_addr = in6addr_loopback;
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_ipv6 =
      socket && Fd(::socket(AF_INET6, SOCK_STREAM, 0)) &&
      (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 || errno == ECONNREFUSED);
  if (!has_ipv6) return;  // no IPv6 on this machine: nothing to serve
  const auto hello = wire::greeting() + wire::ping(9);
  REQUIRE(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == std::ssize(hello));
  std::string answer(4, '\0');
  CHECK(::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL) == 4);
  CHECK(answer == wire::number(9, 4));
}

}  // namespace server_test
