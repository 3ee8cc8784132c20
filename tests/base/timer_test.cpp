#include "base/timer.hpp"

#include <memory>
#include <vector>

#include "catch.hpp"

namespace timer_test {

using namespace taas;

TEST_CASE("a timer tells its deadline once") {
  boost::asio::io_context io;
  int told = 0;
  Timer timer(io, [&] { ++told; });
  timer.set(steady_now());
  io.run();
  CHECK(told == 1);
}

TEST_CASE("a new deadline replaces the former one, even one that has already expired") {
  boost::asio::io_context io;
  int told = 0;
  Timer timer(io, [&] { ++told; });
  timer.set(steady_now() - std::chrono::seconds(1));
  io.poll_one();  // may have queued the first expiry
  int before = told;
  timer.set(steady_now());
  timer.set(steady_now());
  io.restart();
  io.run();
  CHECK(told == before + 1);
}

TEST_CASE("a cleared or destroyed timer tells nothing") {
  boost::asio::io_context io;
  int told = 0;
  auto destroyed = std::make_unique<Timer>(io, [&] { ++told; });
  Timer cleared(io, [&] { ++told; });
  destroyed->set(steady_now());
  cleared.set(steady_now());
  destroyed.reset();
  cleared.clear();
  io.run();
  CHECK(told == 0);
}

TEST_CASE("a timer may be destroyed by what it calls") {
  boost::asio::io_context io;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(io, [&] { timer.reset(); });
  timer->set(steady_now());
  io.run();
  CHECK(timer == nullptr);
}

}  // namespace timer_test
