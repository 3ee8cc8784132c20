// What clients may take of the server: memory, connections, and turns of its loop.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>

#include "store/client.hpp"
#include "store/server.hpp"

namespace server_limits_test {

using namespace taas;
using namespace taas::store;

namespace {

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

std::size_t resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

}  // namespace

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

TEST_CASE("who has just come does not make room for who comes next") {
  RunningServer server({.most_clients = 2, .crowded_patience = std::chrono::hours(1)});
  Client first(server.port(), "");
  Client second(server.port());
  Client third(server.port());
  CHECK(second.answers());
  first.send(wire::greeting());
  CHECK(first.answers());
  CHECK(server.connections() == 2);
}

TEST_CASE("who does not greet in time is closed, and who has greeted may say nothing for as long as it likes") {
  RunningServer server({.patience = std::chrono::seconds(2)});
  Client greeted(server.port());
  Client silent(server.port(), "");
  Client half(server.port(), wire::greeting().substr(0, 3));
  CHECK(silent.is_closed());
  CHECK(half.is_closed());
  CHECK(server.connections() == 1);
  CHECK(greeted.answers());
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

}  // namespace server_limits_test
