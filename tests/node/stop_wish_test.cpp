#include "node/stop_wish.hpp"

#include <filesystem>
#include <vector>

#include "catch.hpp"
#include "node/process/private_folder.hpp"

namespace stop_wish_test {

using namespace taas;
using namespace taas::node;

namespace {

struct Told {
  boost::asio::io_context io;
  DiskThread disk{io};
  std::vector<int> signals;
  std::vector<std::string> remarks;
  StopWish wish{io, disk, [this](const run::SignalRanks& request) { signals.push_back(request.signal); },
                [this](std::string text) { remarks.push_back(std::move(text)); }};

  void pass(int signal) { wish.pass(run::SignalRanks{Generation{0}, {Rank{0}}, signal}); }
  void run_until_sent(std::size_t count) {
    while (signals.size() < count) io.run_one();
  }
};

}  // namespace

TEST_CASE("a signal waits until the file that says why is there") {
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  const auto path = folder->path() + "/stop-requested-0";
  Told told;
  told.pass(1);
  CHECK(told.signals == std::vector{1});
  told.wish.tell(path);
  told.pass(2);
  told.pass(3);
  CHECK(told.signals == std::vector{1});
  told.run_until_sent(3);
  CHECK(std::filesystem::exists(path));
  CHECK(told.signals == std::vector{1, 2, 3});
  told.pass(4);
  CHECK(told.signals.size() == 4);
  CHECK(told.remarks.empty());
}

TEST_CASE("a file that cannot be made is told, and keeps no signal back") {
  Told told;
  told.wish.tell("/nowhere/stop-requested-0");
  told.pass(2);
  told.run_until_sent(1);
  REQUIRE(told.remarks.size() == 1);
  CHECK_THAT(told.remarks[0], ContainsSubstring("/nowhere/stop-requested-0"));
}

}  // namespace stop_wish_test
