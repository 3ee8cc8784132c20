#include "node/output/send_window.hpp"

#include <algorithm>
#include <chrono>

namespace taas::node {
namespace {

using namespace std::chrono_literals;

constexpr Duration kQuick = 50ms;
constexpr Duration kSlow = 200ms;  // less than the interval of heartbeats

}  // namespace

void SendWindow::acknowledge(Duration after) {
  if (after < kQuick) bytes_ = std::min(bytes_ * 2, kMost);
  if (after > kSlow) bytes_ = std::max(bytes_ / 2, kLeast);
}

}  // namespace taas::node
