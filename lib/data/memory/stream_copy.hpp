#pragma once

#include <cstddef>
#include <span>

namespace taas::data {

/// Copies to where nobody will look before the caches have been filled anew several times: around them, without reading
/// what is overwritten. The ranges must not overlap.
void stream_copy(std::byte* to, std::span<const std::byte> from);

}  // namespace taas::data
