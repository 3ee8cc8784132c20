#include "data/wire/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "data/wire/digest_functions.hpp"

namespace taas::data {

namespace {

const DigestFunctions& functions() {
#if defined(TAAS_DIGEST_AVX2)
  static const DigestFunctions best = __builtin_cpu_supports("avx2") ? avx2_digest() : portable_digest();
#else
  static const DigestFunctions best = portable_digest();
#endif
  return best;
}

}  // namespace

struct Digest::State {
  XXH3_state_t xxh3;
};

Digest::Digest() : state_(std::make_unique<State>()) { reset(); }
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::span<const std::byte> bytes) { functions().add(&state_->xxh3, bytes.data(), bytes.size()); }

std::uint64_t Digest::value() const { return functions().value(&state_->xxh3); }

void Digest::reset() {
  XXH3_INITSTATE(&state_->xxh3);
  XXH3_64bits_reset(&state_->xxh3);
}

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.value();
}

}  // namespace taas::data
