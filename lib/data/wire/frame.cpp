#include "data/wire/frame.hpp"

#include <fmt/format.h>

#include "data/wire/digest.hpp"
#include "data/wire/little_endian.hpp"

namespace taas::data {

namespace {

constexpr std::uint32_t kMagic = 0x44534154;  // "TASD" as bytes
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kDescriptionSum = 56;
constexpr std::size_t kHeaderSum = 60;

constexpr std::uint64_t kMostPayload = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostDefinition = std::uint64_t{4} << 30;
constexpr std::uint64_t kMostTask = std::uint64_t{64} << 20;
constexpr std::uint32_t kMostDescription = 16u << 20;
constexpr std::uint32_t kDigestText = 32;
constexpr std::uint32_t kPlaceBytes = 28;

/// What a kind of frame may carry.
struct Limits {
  std::uint16_t flags = 0;
  std::uint32_t description = 0;
  std::uint64_t payload = 0;
};

Limits limits_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
      return {.flags = kInLz4 | kInZstd};
    case FrameKind::kDefinitionWanted:
      return {.description = kDigestText};
    case FrameKind::kDefinition:
      return {.flags = kDescriptor, .description = kDigestText, .payload = kMostDefinition};
    case FrameKind::kTask:
      return {.flags = kTold, .description = kDigestText, .payload = kMostTask};
    case FrameKind::kBatch:
      return {.flags = kInSlot | kInLz4 | kInZstd, .payload = kMostPayload};
    case FrameKind::kRaised:
      return {.description = kMostDescription, .payload = kMostTask};
    case FrameKind::kReturned:
      return {.description = kMostDescription};
    case FrameKind::kSlotOffer:
      return {.flags = kDescriptor, .description = kPlaceBytes};
    default:
      return {};
  }
}

std::uint32_t checksum(std::span<const std::byte> bytes) { return static_cast<std::uint32_t>(digest_of(bytes)); }

std::uint32_t checksum(std::string_view text) { return text.empty() ? 0 : checksum(std::as_bytes(std::span(text))); }

/// Empty: nothing is wrong.
std::string objection(const FrameHeader& header) {
  const auto limits = limits_of(header.kind);
  if ((header.flags & ~limits.flags) != 0) return fmt::format("flags {:#x}", header.flags);
  if (header.has(kInLz4) && header.has(kInZstd)) return "two ways to compress";
  if (header.has(kInSlot) && (header.flags != kInSlot || header.slot == kNoSlot)) return "a payload in no slot";
  if (header.description_size > limits.description) return fmt::format("{} bytes of text", header.description_size);
  if (header.payload_size > limits.payload) return fmt::format("{} bytes of payload", header.payload_size);
  return {};
}

}  // namespace

std::uint64_t most_description(FrameKind kind) { return limits_of(kind).description; }
std::uint64_t most_payload(FrameKind kind) { return limits_of(kind).payload; }

HeaderBytes encode(const FrameHeader& header, std::string_view description) {
  HeaderBytes bytes{};
  store(&bytes[0], kMagic);
  store(&bytes[4], kVersion);
  store(&bytes[5], static_cast<std::uint8_t>(header.kind));
  store(&bytes[6], header.flags);
  store(&bytes[8], header.stream);
  store(&bytes[16], header.number);
  store(&bytes[24], header.attempt);
  store(&bytes[32], header.slot);
  store(&bytes[36], static_cast<std::uint32_t>(description.size()));
  store(&bytes[40], header.payload_size);
  store(&bytes[48], header.value);
  store(&bytes[kDescriptionSum], checksum(description));
  store(&bytes[kHeaderSum], checksum(std::span(bytes).first<kHeaderSum>()));
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  const auto version = load<std::uint8_t>(&bytes[4]);
  const auto kind = load<std::uint8_t>(&bytes[5]);
  if (load<std::uint32_t>(&bytes[0]) != kMagic) return protocol_error("not a frame of data delivery");
  if (version != kVersion) return protocol_error(fmt::format("data protocol {} instead of {}", version, kVersion));
  if (load<std::uint32_t>(&bytes[kHeaderSum]) != checksum(bytes.first<kHeaderSum>())) {
    return protocol_error("a frame's header was damaged on the way");
  }
  if (kind < static_cast<std::uint8_t>(FrameKind::kHello) || kind > static_cast<std::uint8_t>(FrameKind::kPong)) {
    return protocol_error(fmt::format("a frame of unknown kind {}", kind));
  }
  const FrameHeader header{.kind = static_cast<FrameKind>(kind),
                           .flags = load<std::uint16_t>(&bytes[6]),
                           .stream = load<std::uint64_t>(&bytes[8]),
                           .number = load<std::uint64_t>(&bytes[16]),
                           .attempt = load<std::uint64_t>(&bytes[24]),
                           .slot = load<std::uint32_t>(&bytes[32]),
                           .description_size = load<std::uint32_t>(&bytes[36]),
                           .payload_size = load<std::uint64_t>(&bytes[40]),
                           .value = load<std::uint64_t>(&bytes[48])};
  const auto wrong = objection(header);
  if (!wrong.empty()) return protocol_error(fmt::format("a frame of kind {} with {}", kind, wrong));
  return header;
}

bool fits(std::span<const std::byte, kHeaderBytes> header, std::string_view description) {
  return load<std::uint32_t>(&header[36]) == description.size() &&
         load<std::uint32_t>(&header[kDescriptionSum]) == checksum(description);
}

std::string encode(const SlotPlace& place) {
  std::string text(kPlaceBytes, '\0');
  auto* bytes = reinterpret_cast<std::byte*>(text.data());
  store(bytes, place.arena);
  store(bytes + 4, place.arena_bytes);
  store(bytes + 12, place.offset);
  store(bytes + 20, place.bytes);
  return text;
}

Result<SlotPlace> decode_place(std::string_view text) {
  if (text.size() != kPlaceBytes) return protocol_error(fmt::format("a slot's place of {} bytes", text.size()));
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  const SlotPlace place{.arena = load<std::uint32_t>(bytes),
                        .arena_bytes = load<std::uint64_t>(bytes + 4),
                        .offset = load<std::uint64_t>(bytes + 12),
                        .bytes = load<std::uint64_t>(bytes + 20)};
  if (place.arena_bytes > kMostPayload || place.bytes > place.arena_bytes ||
      place.offset > place.arena_bytes - place.bytes) {
    return protocol_error("a slot outside its memory");
  }
  return place;
}

}  // namespace taas::data
