#include "store/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>

#include "store/client.hpp"
#include "store/parser.hpp"

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

std::size_t resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
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

TEST_CASE("a client that does not read its answers blocks nobody and gets them all in the end") {
  RunningServer server;
  Client slow(server.port());
  Client other(server.port());
  const std::string value(4 * 1024 * 1024, 'x');
  constexpr int kGets = 40;
  slow.send(wire::set("big", value));
  for (int i = 0; i < kGets; ++i) slow.send(wire::get("big"));
  slow.send(wire::set("done", "1"));
  CHECK(other.answers());
  CHECK(other.ask(wire::counted(wire::kCheck, 1, {"done"}), 1) == kOne);
  const auto expected = wire::blob(value);
  for (int i = 0; i < kGets; ++i) REQUIRE(slow.receive(expected.size()) == expected);
  CHECK(other.ask(wire::wait("done"), 1) == kZero);
  CHECK(slow.answers());
}

TEST_CASE("a short request for a long answer costs the server nothing") {
  constexpr std::size_t kKeys = 100;
  constexpr std::size_t kMegabytes = 8;
  RunningServer server;
  Client greedy(server.port());
  Client other(server.port());
  const std::string value(kMegabytes << 20, 'x');
  greedy.send(wire::set("big", value));
  CHECK(greedy.answers());
  const auto before = resident_megabytes();
  auto request = wire::request(wire::kMultiGet, wire::number(kKeys));
  for (std::size_t i = 0; i < kKeys; ++i) request += wire::blob("big");
  greedy.send(request);
  CHECK(other.answers());
  other.send(wire::set("again", value));
  CHECK(other.answers());
  CHECK(resident_megabytes() < before + kKeys * kMegabytes / 4);
  const auto expected = wire::blob(value);
  for (std::size_t i = 0; i < kKeys; ++i) REQUIRE(greedy.receive(expected.size()) == expected);
  CHECK(greedy.answers());
}

TEST_CASE("who holds more than there is room for is closed, and the others go on") {
  RunningServer server({.most_bytes = 10 << 20});
  Client good(server.port());
  const std::string half(6 << 20, 'x');
  good.send(wire::set("k", half));
  CHECK(good.answers());
  const auto endless = wire::set("l", half);
  const auto whole = GENERATE(true, false);
  Client bad(server.port());
  bad.send(whole ? endless : endless.substr(0, endless.size() - 1));
  CHECK(bad.is_closed());
  CHECK(good.answers());
  CHECK((good.ask(wire::get("k"), 8 + half.size()) == wire::blob(half)));
  REQUIRE(server.refused().size() == 1);
  CHECK_THAT(server.refused().front(), ContainsSubstring("10485760"));
}

TEST_CASE("however many clients ask, and however much, all else has its turn in between") {
  const std::size_t count = GENERATE(1, 20);
  const std::size_t each = 500 / count;
  constexpr std::size_t kAnswer = 4;
  boost::asio::io_context io(1);
  boost::asio::steady_timer heartbeat(io);
  std::deque<Client> clients;
  std::size_t answered = 0;
  const auto look = [&](const boost::system::error_code&) {
    for (const auto& client : clients) answered += client.waiting_bytes(each * kAnswer) / kAnswer;
    io.stop();
  };
  const auto begin_heartbeat = [&] {  // due from the first request on
    heartbeat.expires_after(std::chrono::seconds(0));
    heartbeat.async_wait(look);
  };
  auto server = Server::listen(io, {.longest_turn = std::chrono::milliseconds(0)},
                               {.on_joined = [](Rank) {}, .on_reached = begin_heartbeat});
  REQUIRE(server.has_value());
  std::string requests;
  for (std::size_t i = 0; i < each; ++i) requests += wire::ping(7);
  for (std::size_t i = 0; i < count; ++i) clients.emplace_back((*server)->port(), wire::greeting() + requests);
  io.run();
  CHECK(answered > 0);
  CHECK(answered < 10);
  io.restart();
  std::thread rest([&] { io.run_for(std::chrono::seconds(Client::kDeadlineSeconds)); });
  for (auto& client : clients) CHECK(client.receive(each * kAnswer).size() == each * kAnswer);
  boost::asio::post(io, [&] { io.stop(); });
  rest.join();
}

TEST_CASE("requests that wait for the next turn are not forgotten, nor done twice") {
  RunningServer server({.longest_turn = std::chrono::milliseconds(0)});
  std::deque<Client> clients;
  const auto add = [](std::uint64_t amount) {
    return wire::request(wire::kAdd, wire::blob("sum") + wire::number(amount));
  };
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += add(1);
  for (int i = 0; i < 8; ++i) clients.emplace_back(server.port());
  for (auto& client : clients) client.send(requests);
  for (auto& client : clients) CHECK(client.receive(8 * 1000).size() == 8 * 1000);
  CHECK(clients.front().ask(add(0), 8) == wire::number(8000, 8));
}

TEST_CASE("a crowd that asks for nothing makes room for who does") {
  RunningServer server({.most_clients = 8});
  std::deque<Client> crowd;
  Client first(server.port());
  CHECK(first.answers());
  for (int i = 0; i < 100; ++i) crowd.emplace_back(server.port(), i % 2 == 0 ? "" : wire::greeting());
  Client second(server.port());
  CHECK(second.answers());
  CHECK(first.answers());
  CHECK(crowd.front().is_closed());
  CHECK(server.connections() <= 8);
}

TEST_CASE("clients beyond the most wait until others leave") {
  RunningServer server({.most_clients = 2});
  Client first(server.port());
  std::optional<Client> second(server.port());
  CHECK(first.answers());
  CHECK(second->answers());
  Client third(server.port());
  CHECK(server.connections() == 2);
  second.reset();
  CHECK(third.answers());
  CHECK(first.answers());
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
