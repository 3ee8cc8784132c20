#include "training/sums/ring_sum.hpp"

#include <algorithm>

namespace taas {
namespace {

constexpr std::size_t kMostSegmentBytes = std::size_t{1} << 20;  // gloo's own limit

std::size_t rounded_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

template <class Number>
void add_two(const Number* a, const Number* b, Number* sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

}  // namespace

RingChunk ring_chunk(std::size_t count, std::size_t element_bytes, std::size_t ranks, std::size_t chunk) {
  const auto bytes = count * element_bytes;
  const auto enough = std::max((bytes + kMostSegmentBytes - 1) / kMostSegmentBytes, 2 * ranks);
  const auto segments = rounded_up(enough, ranks);
  const auto segment = rounded_up((bytes + segments - 1) / segments, element_bytes) / element_bytes;
  const auto size = segment * (segments / ranks);
  return {std::min(chunk * size, count), std::min((chunk + 1) * size, count)};
}

template <class Number>
void add_in_ring_order(const std::vector<const Number*>& parts, Number* sum, std::size_t count) {
  const auto ranks = parts.size();
  for (std::size_t chunk = 0; chunk < ranks; ++chunk) {
    const auto [begin, end] = ring_chunk(count, sizeof(Number), ranks, chunk);
    const auto part = [&, at = begin](std::size_t step) { return parts[(chunk + 2 * ranks - 1 - step) % ranks] + at; };
    add_two(part(0), part(1), sum + begin, end - begin);
    for (std::size_t step = 2; step < ranks; ++step) add_two(sum + begin, part(step), sum + begin, end - begin);
  }
}

template void add_in_ring_order(const std::vector<const float*>& parts, float* sum, std::size_t count);
template void add_in_ring_order(const std::vector<const double*>& parts, double* sum, std::size_t count);

}  // namespace taas
