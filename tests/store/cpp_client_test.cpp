// torch's own C++ client against the launcher's store.
#include <chrono>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "catch.hpp"
#include "store/running_server.hpp"

namespace cpp_client_test {

namespace {

using Bytes = std::vector<std::uint8_t>;
using std::chrono::milliseconds;

Bytes bytes(const std::string& text) { return {text.begin(), text.end()}; }

c10::intrusive_ptr<c10d::Store> connect(const RunningServer& server, const std::string& host = "127.0.0.1") {
  c10d::TCPStoreOptions options;
  options.port = server.port();
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(60);
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace

TEST_CASE("the C++ client sets, reads, counts and deletes") {
  RunningServer server;
  const auto store = connect(server);
  store->set("k", bytes("value"));
  CHECK(store->get("k") == bytes("value"));
  CHECK(store->add("n", 5) == 5);
  CHECK(store->add("n", -7) == -2);
  CHECK(store->check({"k", "n"}));
  CHECK_FALSE(store->check({"k", "none"}));
  CHECK(store->compareSet("k", bytes("value"), bytes("next")) == bytes("next"));
  CHECK(store->compareSet("k", bytes("value"), bytes("other")) == bytes("next"));
  CHECK(store->getNumKeys() == 2);
  CHECK(store->deleteKey("k"));
  CHECK_FALSE(store->deleteKey("k"));
}

TEST_CASE("the C++ client appends, and sets and reads many keys at once") {
  RunningServer server;
  const auto store = connect(server);
  store->append("a", bytes("x"));
  store->append("a", bytes("yz"));
  store->multiSet({"b", "c"}, {bytes("1"), bytes("")});
  CHECK(store->multiGet({"a", "b", "c"}) == std::vector<Bytes>{bytes("xyz"), bytes("1"), bytes("")});
  CHECK(store->listKeys().size() == 3);
}

TEST_CASE("the C++ client's queues keep their order") {
  RunningServer server;
  const auto store = connect(server);
  store->queuePush("q", bytes("1"));
  store->queuePush("q", bytes("2"));
  CHECK(store->queueLen("q") == 2);
  CHECK(store->queuePop("q", true) == bytes("1"));
  CHECK(store->queuePop("q", false) == bytes("2"));
  CHECK_THROWS(store->queuePop("q", false));
}

TEST_CASE("a wait of the C++ client ends with the key, or with its time, and the connection stays usable") {
  RunningServer server;
  const auto store = connect(server);
  const auto other = connect(server, "localhost");
  CHECK_THROWS(store->wait({"never"}, milliseconds(50)));
  store->set("k", bytes("still here"));
  CHECK(store->get("k") == bytes("still here"));
  std::thread setter([&] { other->set("later", bytes("1")); });
  CHECK_NOTHROW(store->wait({"later"}, std::chrono::seconds(60)));
  setter.join();
}

TEST_CASE("clones and prefixes of the C++ client are clients of the same store") {
  RunningServer server;
  const auto store = connect(server);
  const auto prefixed = c10::make_intrusive<c10d::PrefixStore>("group", store->clone());
  prefixed->set("k", bytes("1"));
  CHECK(store->get("group/k") == bytes("1"));
}

TEST_CASE("a barrier of C++ clients opens when the last has come") {
  constexpr int kClients = 8;
  RunningServer server;
  std::vector<std::thread> clients;
  std::atomic<int> passed = 0;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      const auto store = connect(server);
      store->barrier("all", kClients, std::chrono::seconds(60));
      ++passed;
    });
  }
  for (auto& client : clients) client.join();
  CHECK(passed == kClients);
  CHECK_THROWS(connect(server)->barrier("alone", 2, milliseconds(50)));
}

}  // namespace cpp_client_test
