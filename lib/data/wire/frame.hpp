#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace taas::data {

/// docs/design-data.md says what each is for and which fields it uses.
enum class FrameKind : std::uint8_t {
  kHello = 1,
  kReady,
  kDefinitionWanted,
  kDefinition,
  kTask,
  kStarted,
  kWithdraw,
  kBatch,
  kRaised,
  kReturned,
  kSlotOffer,
  kSlotForget,
  kSlotWanted,
  kSlot,
  kPing,
  kPong,
};

inline constexpr std::uint16_t kInSlot = 1;  ///< a batch: the payload is in the client's slot, not behind the header
inline constexpr std::uint16_t kInLz4 = 2;   ///< a batch: the payload comes in chunks, lz4. A hello: wanted
inline constexpr std::uint16_t kInZstd = 4;  ///< the same with zstd
inline constexpr std::uint16_t kDescriptor = 8;  ///< a slot offer, a definition: a descriptor comes with it
inline constexpr std::uint16_t kTold = 16;       ///< a task: the worker says that it begins, and only then does
inline constexpr std::uint16_t kAllFlags = 31;

inline constexpr std::uint32_t kNoSlot = 0xffffffff;

/// What stands in front of every frame. Behind it: `description_size` bytes, then `payload_size` bytes (unless
/// kInSlot), then, where there was a payload, its XXH3 in 8 bytes.
struct FrameHeader {
  FrameKind kind = FrameKind::kPing;
  std::uint16_t flags = 0;
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
  std::uint64_t attempt = 0;
  std::uint32_t slot = kNoSlot;
  std::uint32_t description_size = 0;
  std::uint64_t payload_size = 0;  ///< before compression
  std::uint64_t value = 0;         ///< a digest or a size: as the kind says

  [[nodiscard]] bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
  /// Whether a payload and its digest follow.
  [[nodiscard]] bool has_payload() const { return payload_size > 0 && !has(kInSlot); }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

/// How many bytes a frame of a kind may carry. Who sends more is cut off, and would be again: senders look first.
std::uint64_t most_description(FrameKind kind);
std::uint64_t most_payload(FrameKind kind);

inline constexpr std::size_t kHeaderBytes = 64;
using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode(const FrameHeader& header, std::string_view description);

/// Refuses whatever encode() does not make: another magic or version, an unknown kind or flag, sizes beyond what the
/// kind may have, a wrong checksum.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

/// Whether the description is the one that the header was made for.
bool fits(std::span<const std::byte, kHeaderBytes> header, std::string_view description);

/// A place in memory that the client shares with a worker on its machine: the description of a slot offer.
struct SlotPlace {
  std::uint32_t arena = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SlotPlace&, const SlotPlace&) = default;
};
std::string encode(const SlotPlace& place);
/// Refuses a place that is not inside its arena.
Result<SlotPlace> decode_place(std::string_view text);

}  // namespace taas::data
