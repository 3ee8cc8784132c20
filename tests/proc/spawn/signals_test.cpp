#include "proc/spawn/signals.hpp"

#include <signal.h>

#include "proc/processes.hpp"

namespace signals_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("signals arrive in the event loop, each as often as sent") {
  boost::asio::io_context io;
  std::vector<int> received;
  SignalSource source(io, {SIGUSR1, SIGUSR2}, [&](int signal, Instant, int) { received.push_back(signal); });
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  CHECK(received.empty());
  REQUIRE(run_until(io, [&] { return received.size() == 3; }));
  CHECK(std::count(received.begin(), received.end(), SIGUSR1) == 2);
}

TEST_CASE("under nohup a hangup stays ignored") {
  auto before = ::signal(SIGHUP, SIG_IGN);
  CHECK(is_ignored(SIGHUP));
  {
    boost::asio::io_context io;
    std::vector<int> received;
    SignalSource source(io, {SIGHUP, SIGUSR1}, [&](int signal, Instant, int) { received.push_back(signal); });
    ::raise(SIGHUP);
    ::raise(SIGUSR1);
    REQUIRE(run_until(io, [&] { return !received.empty(); }));
    CHECK(received == std::vector<int>{SIGUSR1});
    CHECK(is_ignored(SIGHUP));
  }
  ::signal(SIGHUP, SIG_DFL);
  CHECK_FALSE(is_ignored(SIGHUP));
  ::signal(SIGHUP, before);
}

TEST_CASE("without nohup a hangup is received") {
  auto before = ::signal(SIGHUP, SIG_DFL);
  {
    boost::asio::io_context io;
    bool received = false;
    SignalSource source(io, {SIGHUP}, [&](int, Instant, int) { received = true; });
    ::raise(SIGHUP);
    CHECK(run_until(io, [&] { return received; }));
  }
  ::signal(SIGHUP, before);
}

}  // namespace signals_test
