#pragma once

#include <chrono>

namespace taas {

/// All decisions are made on this clock: monotonic, nanoseconds. Pure code gets instants as arguments and never asks.
using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline Instant steady_now() { return std::chrono::steady_clock::now(); }

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace taas
