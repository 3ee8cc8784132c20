#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace taas::data {

/// When a peer is asked for a sign of life, and when it is gone: it has not said a word between so many pings. What
/// this process slept through does not count.
class PeerWatch {
 public:
  static constexpr Duration kPingEvery = std::chrono::seconds(1);
  static constexpr int kMostUnanswered = 5;

  enum class Verdict { kWell, kPing, kGone };

  explicit PeerWatch(Instant now) : last_ping_(now) {}

  /// `received`: bytes so far. While this end does not read, the peer cannot be heard.
  Verdict look(Instant now, std::uint64_t received, bool reads) {
    if (heard_ != received || !reads) {
      heard_ = received;
      unanswered_ = 0;
    }
    if (now < next_ping()) return Verdict::kWell;
    if (unanswered_ >= kMostUnanswered) return Verdict::kGone;
    last_ping_ = now;
    ++unanswered_;
    return Verdict::kPing;
  }
  [[nodiscard]] Instant next_ping() const { return last_ping_ + kPingEvery; }

 private:
  Instant last_ping_;
  int unanswered_ = 0;  // pings since the last byte
  std::uint64_t heard_ = 0;
};

}  // namespace taas::data
