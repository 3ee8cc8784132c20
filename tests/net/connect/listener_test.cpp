#include "net/connect/listener.hpp"

#include <boost/asio/read.hpp>

#include "net/stranger.hpp"

namespace listener_test {

using namespace taas;
using namespace taas::net;

TEST_CASE("many agents join, each with a link of its own") {
  boost::asio::io_context io;
  Host host(io);
  std::vector<std::unique_ptr<End>> agents;
  std::vector<std::unique_ptr<Connecting>> under_way;
  for (int i = 0; i < 100; ++i) {
    under_way.push_back(connect(io, {{"127.0.0.1"}, host.listener->port(), secret(), std::chrono::seconds(60)},
                                [&agents](auto link) { agents.push_back(std::make_unique<End>(std::move(*link))); }));
  }
  turn_until(io, [&] { return agents.size() == 100 && host.ends.size() == 100; });
  for (const auto& end : host.ends) end->link->send("hello");
  turn_until(io, [&] {
    return std::all_of(agents.begin(), agents.end(), [](const auto& agent) { return agent->frames.size() == 1; });
  });
}

TEST_CASE("IPv6 is served on the same port") {
  boost::asio::io_context io;
  Host host(io, {.addresses = {"127.0.0.1", "::1"}, .secret = {}});
  End agent(try_connect(io, {.addresses = {"::1"}, .port = host.listener->port(), .secret = {}}).value());
  turn_until(io, [&] { return host.ends.size() == 1; });
  CHECK(agent.link->peer_address() == "::1");
  CHECK(host.ends.front()->link->peer_address() == "::1");
}

TEST_CASE("a listener that is gone turns everybody away, strangers too, but keeps no link from working") {
  boost::asio::io_context io;
  Host host(io);
  const auto port = host.listener->port();
  End agent(try_connect(io, {.addresses = {}, .port = port, .secret = {}}).value());
  Stranger stranger(io, port);
  turn_until(io, [&] { return host.ends.size() == 1; });
  host.listener.reset();
  stranger.wait_until_turned_away();
  CHECK(failure_of(io, {.addresses = {}, .port = port, .secret = {}}) ==
        "127.0.0.1 port " + std::to_string(port) + ": connection refused");
  agent.link->send("still here");
  turn_until(io, [&] { return host.ends.front()->frames.size() == 1; });
}

TEST_CASE("a client of torch's store is passed on with all that it said, and agents still come") {
  boost::asio::io_context io;
  std::vector<boost::asio::ip::tcp::socket> clients;
  std::vector<std::unique_ptr<End>> ends;
  auto listener = Listener::listen(
                      io, {.addresses = {"127.0.0.1"}, .secret = secret()},
                      [&](std::unique_ptr<Link> link) { ends.push_back(std::make_unique<End>(std::move(link))); },
                      [&](boost::asio::ip::tcp::socket client) { clients.push_back(std::move(client)); })
                      .value();
  const std::string kValidate("\0\xce\xf7\x85\x3c", 5);
  Stranger client(io, listener->port());
  Stranger silent(io, listener->port());
  client.say(kValidate);
  turn_until(io, [&] { return clients.size() == 1; });
  std::string heard(kValidate.size(), ' ');
  boost::asio::read(clients.front(), boost::asio::buffer(heard));
  CHECK(heard == kValidate);
  End agent(try_connect(io, {.addresses = {}, .port = listener->port(), .secret = {}}).value());
  turn_until(io, [&] { return ends.size() == 1; });
  silent.say("GET / HTTP/1.1\r\n\r\n");
  silent.wait_until_turned_away();
}

TEST_CASE("the listener may be destroyed by the link that it brings") {
  boost::asio::io_context io;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<End> end;
  listener = Listener::listen(io, {.addresses = {"127.0.0.1"}, .secret = secret()}, [&](std::unique_ptr<Link> link) {
               listener.reset();
               end = std::make_unique<End>(std::move(link));
             }).value();
  End agent(try_connect(io, {.addresses = {}, .port = listener->port(), .secret = {}}).value());
  turn_until(io, [&] { return end != nullptr; });
  agent.link->send("hello");
  turn_until(io, [&] { return end->frames.size() == 1; });
}

TEST_CASE("a port that is taken is refused, and free again when its listener is gone") {
  boost::asio::io_context io;
  Host host(io);
  const auto port = host.listener->port();
  const ListenOptions same{.addresses = {"127.0.0.1"}, .port = port, .secret = secret()};
  CHECK_FALSE(Listener::listen(io, same, [](auto) {}).has_value());
  End agent(try_connect(io, {.addresses = {}, .port = port, .secret = {}}).value());
  host.listener.reset();
  CHECK(Listener::listen(io, same, [](auto) {}).has_value());
}

}  // namespace listener_test
