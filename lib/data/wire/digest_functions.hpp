#pragma once

#include <cstddef>
#include <cstdint>

namespace taas::data {

/// XXH3 as it was compiled for one set of instructions; the state is an XXH3_state_t, the same for all of them.
struct DigestFunctions {
  void (*add)(void* state, const void* bytes, std::size_t size);
  std::uint64_t (*value)(const void* state);
};

DigestFunctions portable_digest();
#if defined(TAAS_DIGEST_AVX2)
DigestFunctions avx2_digest();
#endif

}  // namespace taas::data
