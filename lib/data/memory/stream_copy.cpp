#include "data/memory/stream_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace taas::data {

#if defined(__SSE2__)
namespace {

constexpr std::size_t kLane = sizeof(__m128i);
constexpr std::size_t kLine = 4 * kLane;

void stream_line(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  const __m128i lanes[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1), _mm_loadu_si128(source + 2),
                           _mm_loadu_si128(source + 3)};
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, lanes[i]);
}

}  // namespace

void stream_copy(std::byte* to, std::span<const std::byte> from) {
  const auto past = reinterpret_cast<std::uintptr_t>(to) % kLane;
  const auto head = past == 0 ? 0 : std::min(kLane - past, from.size());
  std::memcpy(to, from.data(), head);
  auto done = head;
  for (; from.size() - done >= kLine; done += kLine) stream_line(to + done, from.data() + done);
  std::memcpy(to + done, from.data() + done, from.size() - done);
  _mm_sfence();  // before anybody is told of it
}
#else
void stream_copy(std::byte* to, std::span<const std::byte> from) { std::memcpy(to, from.data(), from.size()); }
#endif

}  // namespace taas::data
