// The flight record of a rank: a pickle that the launcher reads and a program has written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "run/events/flight_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 4;
  auto groups = taas::run::read_flight_record({reinterpret_cast<const char*>(data), size}, kMost);
  if (!groups) return 0;
  for (const auto& group : *groups) {
    if (group.calls.empty() || group.calls.size() > kMost) __builtin_trap();
  }
  return 0;
}
