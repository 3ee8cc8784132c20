#include "flags/values.hpp"

#include <csignal>
#include <limits>

#include "catch.hpp"

namespace values_test {

using namespace taas::cli;
using std::chrono::milliseconds;

namespace {
constexpr int kAny = std::numeric_limits<int>::max();
}

TEST_CASE("whole numbers within bounds") {
  CHECK(read_integer("7", 1, kAny).value() == 7);
  CHECK(read_integer("0", 1, kAny).error().message == "not a whole number from 1");
  CHECK(read_integer("x", 0, 65535).error().message == "not a whole number from 0 to 65535");
  CHECK(read_integer("65536", 0, 65535).has_error());
  CHECK(read_integer("100000000000000000000", 1, kAny).error().message == "too large: the most is 2147483647");
  CHECK(read_integer("", 1, kAny).error().message == "not a whole number from 1");
}

TEST_CASE("switches") {
  for (auto yes : {"true", "True", "yes", "ON", "1", "7"}) CHECK(read_switch(yes).value());
  for (auto no : {"false", "no", "off", "0"}) CHECK_FALSE(read_switch(no).value());
  CHECK(read_switch("maybe").error().message == "neither true nor false");
}

TEST_CASE("seconds may have a fraction") {
  CHECK(read_seconds("30").value() == milliseconds(30000));
  CHECK(read_seconds("0.25").value() == milliseconds(250));
  CHECK(read_seconds("0").value() == milliseconds(0));
  for (auto wrong : {"", "-1", "1s", "nan", "inf", "1e300", " "}) {
    CAPTURE(wrong);
    CHECK(read_seconds(wrong).has_error());
  }
}

TEST_CASE("lists of numbers") {
  CHECK(read_integers("").value().empty());
  CHECK(read_integers("0,2,11").value() == std::vector<int>{0, 2, 11});
  for (auto wrong : {"0,", "a", "-1", "0 1"}) CHECK(read_integers(wrong).has_error());
}

TEST_CASE("one signal, with or without its SIG") {
  CHECK(read_signal("USR2").value() == SIGUSR2);
  CHECK(read_signal("SIGTERM").value() == SIGTERM);
  CHECK(read_signal("STOP").error().message == "STOP cannot be handled");
  for (auto wrong : {"", "SIG", "usr2", "12", "USR2,USR1"}) {
    CHECK(read_signal(wrong).error().message == "not a signal, such as USR2");
  }
}

TEST_CASE("signals by name") {
  CHECK(read_signals("SIGTERM, SIGUSR1").value().known == std::vector<int>{SIGTERM, SIGUSR1});
  CHECK(read_signals("TERM,SIGINT,SIGX").value().known == std::vector<int>{SIGINT});
  CHECK(read_signals("TERM,SIGINT,SIGX").value().unknown == std::vector<std::string>{"TERM", "SIGX"});
  CHECK(read_signals("SIGKILL").error().message == "SIGKILL cannot be handled");
  for (auto wrong : {"", "SIGTERM,", " "}) {
    CHECK(read_signals(wrong).error().message == "not a list of signals, such as SIGTERM,SIGUSR1");
  }
}

}  // namespace values_test
