#include "node/output/send_window.hpp"

#include <chrono>

#include "catch.hpp"

namespace send_window_test {

using namespace taas;
using namespace taas::node;
using namespace std::chrono_literals;

TEST_CASE("a fast network gets as much as it takes, short of a megabyte") {
  SendWindow window;
  auto least = window.bytes();
  for (int i = 0; i < 100; ++i) window.acknowledge(1ms);
  CHECK(window.bytes() > 8 * least);
  CHECK(window.bytes() < 1u << 20);
}

TEST_CASE("a slow one never holds a heartbeat up by more than the least") {
  SendWindow window;
  auto least = window.bytes();
  for (int i = 0; i < 100; ++i) window.acknowledge(1ms);
  for (int i = 0; i < 100; ++i) window.acknowledge(1s);
  CHECK(window.bytes() == least);
  window.acknowledge(100ms);
  CHECK(window.bytes() == least);
}

}  // namespace send_window_test
