#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "base/fd.hpp"

namespace taas::data {

/// How much has to be there before a poll ends. In the middle of a large payload a thread need not be woken for every
/// packet.
class ReceiveLowWatermark {
 public:
  /// So many bytes at least will come.
  void expect(const Fd& socket, std::size_t bytes) {
    const int wanted = static_cast<int>(bytes >= kSmallRead ? std::min(bytes, kLargeRead) : 1);
    if (wanted == now_) return;
    now_ = wanted;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);
  }

 private:
  static constexpr std::size_t kSmallRead = std::size_t{64} << 10;
  static constexpr std::size_t kLargeRead = std::size_t{1} << 20;
  int now_ = 1;
};

}  // namespace taas::data
