#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace taas::node {

/// Keeps the last lines of one stream of a rank, and when the first line of a fatal error came: the verdict's evidence.
class LastWords {
 public:
  void add(std::string_view line, Instant at);

  /// Oldest first.
  [[nodiscard]] std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  /// Zero: no fatal error was seen. One that the rank has outlived gives way to the next.
  [[nodiscard]] Instant first_error_at() const { return first_error_at_; }

 private:
  std::deque<std::string> lines_;
  Instant first_error_at_{};
};

}  // namespace taas::node
