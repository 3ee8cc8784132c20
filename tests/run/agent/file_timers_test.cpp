#include "run/agent/file_timers.hpp"

#include <csignal>

#include "catch.hpp"

namespace file_timers_test {

using namespace taas::run;

TEST_CASE("a timer is read from the line that torch's client writes") {
  auto timer = parse_file_timer(
      R"({"version": 1, "pid": 4711, "scope_id": "step \u00e4", "expiration_time": 1790000000.25, "signal": 9})");
  REQUIRE(timer);
  CHECK(timer->pid == 4711);
  CHECK(timer->scope == "step \u00e4");
  CHECK(timer->expires_at == 1790000000.25);
  CHECK(timer->signal == SIGKILL);
  CHECK(parse_file_timer(R"({"version":1,"pid":1,"scope_id":"","expiration_time":-1,"signal":0})")->expires_at == -1);
}

TEST_CASE("what is no request is left out") {
  for (auto line :
       {"", "{}", "[]", "garbage", R"({"pid":0,"scope_id":"a","expiration_time":1,"signal":9})",
        R"({"pid":-5,"scope_id":"a","expiration_time":1,"signal":9})",
        R"({"pid":1.5,"scope_id":"a","expiration_time":1,"signal":9})",
        R"({"pid":1e30,"scope_id":"a","expiration_time":1,"signal":9})",
        R"({"pid":5,"scope_id":7,"expiration_time":1,"signal":9})",
        R"({"pid":5,"scope_id":"a","expiration_time":"soon","signal":9})",
        R"({"pid":5,"scope_id":"a","expiration_time":1,"signal":900})", R"({"pid":5,"scope_id":"a","signal":9})"}) {
    INFO(line);
    CHECK_FALSE(parse_file_timer(line));
  }
}

TEST_CASE("a timer that is released or set anew does not expire") {
  FileTimers timers;
  timers.take({7, "step", 10, SIGKILL});
  timers.take({7, "save", 20, SIGKILL});
  CHECK(timers.next() == 10);
  timers.take({7, "step", -1, 0});
  CHECK(timers.next() == 20);
  timers.take({7, "save", 30, SIGKILL});
  CHECK(timers.expire(29).empty());
  CHECK(timers.expire(30).size() == 1);
  CHECK_FALSE(timers.next());
}

TEST_CASE("of a process the first expired timer with a signal counts, and all of it are forgotten") {
  FileTimers timers;
  timers.take({7, "silent", 1, 0});
  timers.take({7, "later", 3, SIGTERM});
  timers.take({7, "first", 2, SIGKILL});
  timers.take({7, "not yet", 90, SIGKILL});
  timers.take({8, "silent", 1, 0});
  timers.take({9, "not yet", 90, SIGKILL});
  auto expired = timers.expire(5);
  REQUIRE(expired.size() == 2);
  CHECK(expired.front().scope == "first");
  CHECK(expired.back().pid == 8);
  CHECK(expired.back().signal == 0);
  CHECK(timers.expire(100).size() == 1);
}

TEST_CASE("there is a limit to the timers, and room again once processes are gone") {
  FileTimers timers;
  for (int pid = 1; pid <= static_cast<int>(FileTimers::kMost); ++pid) REQUIRE(timers.take({pid, "step", 10, SIGKILL}));
  CHECK_FALSE(timers.take({5000, "step", 10, SIGKILL}));
  CHECK(timers.take({5, "step", 20, SIGKILL}));
  timers.forget_if([](int pid) { return pid > 100; });
  CHECK(timers.take({5000, "step", 10, SIGKILL}));
}

}  // namespace file_timers_test
