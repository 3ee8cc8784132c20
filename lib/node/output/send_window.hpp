#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace taas::node {

/// How many bytes of a file may be on their way at once: so many that a fast network is full, and so few that a
/// heartbeat, which goes behind them on the same link, is never late by much. Pure.
class SendWindow {
 public:
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// A piece is on the other side's disk, so long after it was sent.
  void acknowledge(Duration after);

 private:
  static constexpr std::uint64_t kLeast = 64 * 1024;
  static constexpr std::uint64_t kMost = 768 * 1024;
  std::uint64_t bytes_ = kLeast;
};

}  // namespace taas::node
