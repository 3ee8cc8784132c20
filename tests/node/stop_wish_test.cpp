#include "node/stop_wish.hpp"

#include <sys/stat.h>

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
  const HeldPath file{folder->held(), "stop-requested-0"};
  Told told;
  told.pass(1);
  CHECK(told.signals == std::vector{1});
  told.wish.tell(file);
  told.pass(2);
  told.pass(3);
  CHECK(told.signals == std::vector{1});
  told.run_until_sent(3);
  CHECK(std::filesystem::exists(file.path()));
  CHECK(told.signals == std::vector{1, 2, 3});
  told.pass(4);
  CHECK(told.signals.size() == 4);
  CHECK(told.remarks.empty());
}

TEST_CASE("a file that cannot be made is told, and keeps no signal back") {
  Told told;
  told.wish.tell({HeldFolder::open("/proc").value(), "nowhere/stop-requested-0"});
  told.pass(2);
  told.run_until_sent(1);
  REQUIRE(told.remarks.size() == 1);
  CHECK_THAT(told.remarks[0], ContainsSubstring("/proc/nowhere"));
}

TEST_CASE("the file is made in place of a link or a pipe, and waits for nobody") {
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  const HeldPath file{folder->held(), "stop-requested-0"};
  const auto elsewhere = folder->path() + "/elsewhere";
  SECTION("a link") { std::filesystem::create_symlink(elsewhere, file.path()); }
  SECTION("a pipe") { REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0); }
  Told told;
  told.wish.tell(file);
  told.pass(2);
  told.run_until_sent(1);
  CHECK(told.remarks.empty());
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(file.path())));
  CHECK_FALSE(std::filesystem::exists(elsewhere));
}

}  // namespace stop_wish_test
