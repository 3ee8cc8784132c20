#include "base/disk_thread.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace disk_thread_test {

using namespace taas;
using namespace std::chrono_literals;

TEST_CASE("work is done in order on one other thread, and what follows comes in the same order in the loop") {
  boost::asio::io_context io;
  DiskThread disk(io);
  std::vector<int> done;
  std::vector<int> followed;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 100; ++i) {
    disk.run([&, i] { done.push_back(i), threads.push_back(std::this_thread::get_id()); },
             [&, i] { followed.push_back(i); });
  }
  disk.after([&] { followed.push_back(100); });
  io.run();  // goes on for as long as something is to follow
  REQUIRE(done.size() == 100);
  REQUIRE(followed.size() == 101);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(std::is_sorted(followed.begin(), followed.end()));
  CHECK(std::count(threads.begin(), threads.end(), threads.front()) == 100);
  const bool here = threads.front() == std::this_thread::get_id();
  CHECK_FALSE(here);
}

TEST_CASE("the thread begins when the handler that gave it work has ended") {
  boost::asio::io_context io;
  DiskThread disk(io);
  std::promise<void> begun;
  boost::asio::post(io, [&] {
    disk.run([&] { begun.set_value(); });
    CHECK(begun.get_future().wait_for(50ms) == std::future_status::timeout);
  });
  io.run();
}

TEST_CASE("finish waits as long as work is done, and no longer than the patience for one piece") {
  boost::asio::io_context io;
  DiskThread disk(io);
  CHECK(disk.finish(0s));
  std::promise<void> thaw;
  disk.run([frozen = thaw.get_future().share()] { frozen.wait(); });
  CHECK_FALSE(disk.finish(1ms));
  thaw.set_value();
  CHECK(disk.finish(1h));
}

TEST_CASE("what is given is done before the end, and nothing follows any more") {
  boost::asio::io_context io;
  int done = 0;
  bool followed = false;
  {
    DiskThread disk(io);
    for (int i = 0; i < 10; ++i) disk.run([&] { ++done; }, [&] { followed = true; });
  }
  CHECK(done == 10);
  io.run();
  CHECK_FALSE(followed);
}

TEST_CASE("the end does not wait again for a disk that was waited for in vain") {
  boost::asio::io_context io;
  std::promise<void> thaw;
  std::promise<bool> thawed;
  {
    DiskThread disk(io);
    disk.run([&, frozen = thaw.get_future().share()] {
      thawed.set_value(frozen.wait_for(DiskThread::kPatience / 2) == std::future_status::ready);
    });
    CHECK_FALSE(disk.finish(1ms));
  }
  thaw.set_value();
  CHECK(thawed.get_future().get());
}

TEST_CASE("what follows may end the thread") {
  boost::asio::io_context io;
  std::optional<DiskThread> disk(std::in_place, io);
  bool later = false;
  disk->run([] {}, [&] { disk.reset(); });
  disk->run([] {}, [&] { later = true; });
  io.run();
  CHECK_FALSE(later);
}

}  // namespace disk_thread_test
