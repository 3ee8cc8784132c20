// Thousands of clients at once, and more of them than there are file descriptors.
#include <sys/resource.h>

#include <algorithm>
#include <deque>

#include "store/client.hpp"

namespace crowd_test {

namespace {

const std::string kZero(1, '\0');

/// Sets this process's limit of open files, and restores it.
class OpenFilesLimit {
 public:
  OpenFilesLimit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  rlim_t hard() const { return before_.rlim_max; }
  void set(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }

 private:
  rlimit before_{};
};

int lowest_free_descriptor() {
  const taas::Fd fd(::dup(0));
  return fd.get();
}

}  // namespace

TEST_CASE("thousands of clients connect, wait for one key and are all released") {
  OpenFilesLimit limit;
  limit.set(limit.hard());
  // Both ends of each connection are in this process.
  const auto count = static_cast<std::size_t>(std::min<rlim_t>(4000, (limit.hard() - 100) / 2));
  RunningServer server;
  std::deque<Client> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(wire::blobs(wire::kAdd, {"init/"}) + wire::number(1) + wire::wait("go"));
  }
  for (auto& client : clients) client.receive(8);
  CHECK(server.connections() == static_cast<int>(count));
  Client last(server.port());
  CHECK(last.ask(wire::blobs(wire::kAdd, {"init/"}) + wire::number(0), 8) == wire::number(count));
  last.send(wire::set("go", "1"));
  CHECK(std::ranges::all_of(clients, [](auto& client) { return client.receive(1) == kZero; }));
  CHECK(std::ranges::all_of(clients, [](auto& client) { return client.answers(); }));
}

TEST_CASE("clients that come when no descriptor is left are served when there is one") {
  RunningServer server;
  OpenFilesLimit limit;
  std::deque<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server.port());
    REQUIRE(clients.back().answers());
  }
  {
    OpenFilesLimit tight;
    // Connecting completes in the backlog; the server cannot accept.
    const taas::Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    tight.set(static_cast<rlim_t>(lowest_free_descriptor()));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    const auto hello = wire::greeting() + wire::ping(3);
    REQUIRE(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == std::ssize(hello));
    CHECK(std::ranges::all_of(clients, [](auto& client) { return client.answers(); }));
    clients.pop_front();
    std::string answer(4, '\0');
    CHECK(::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL) == 4);
    CHECK(answer == wire::number(3, 4));
  }
  CHECK(clients.back().answers());
}

}  // namespace crowd_test
