#pragma once

#include <cstddef>
#include <vector>

namespace taas {

/// The elements of rank `chunk` of the ring: of each part, those that are added in the same order.
struct RingChunk {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// As gloo cuts `count` elements of `element_bytes` for its ring of `ranks` (gloo/allreduce.cc).
RingChunk ring_chunk(std::size_t count, std::size_t element_bytes, std::size_t ranks, std::size_t chunk);

/// The sum of all ranks' parts, `count` elements each, to the bit as gloo's ring has it: chunk c begins with the part
/// of rank c - 1, goes down from rank to rank and ends with that of rank c. `sum` overlaps with no part. Of float or
/// double.
template <class Number>
void add_in_ring_order(const std::vector<const Number*>& parts, Number* sum, std::size_t count);

}  // namespace taas
