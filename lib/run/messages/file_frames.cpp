#include "run/messages/file_frames.hpp"

#include <optional>

#include "run/messages/frame_bytes.hpp"

namespace taas::run {
namespace {

constexpr char kFileMark = '\0';
enum FrameKind : char { kOfferFrame = 1, kPieceFrame = 2, kCancelledFrame = 3 };

std::string begin_frame(FrameKind kind, std::uint64_t transfer) {
  std::string bytes{kFileMark, kind};
  put_number(bytes, transfer, 8);
  return bytes;
}

std::string encode_frame(const FileOffer& offer) {
  auto bytes = begin_frame(kOfferFrame, offer.transfer);
  put_number(bytes, offer.size, 8);
  put_number(bytes, offer.mode, 4);
  put_number(bytes, offer.waiting, 4);
  put_number(bytes, offer.name.size(), 4);
  return bytes + offer.name + offer.points_to;
}

std::string encode_frame(const FilePiece& piece) {
  auto bytes = begin_frame(kPieceFrame, piece.transfer);
  bytes += piece.bytes;
  return bytes;
}

std::string encode_frame(const FileCancelled& cancelled) { return begin_frame(kCancelledFrame, cancelled.transfer); }

FileFrame decode_offer(std::uint64_t transfer, FrameBytes& bytes) {
  FileOffer offer;
  offer.transfer = transfer;
  offer.size = bytes.number(8);
  offer.mode = static_cast<std::uint32_t>(bytes.number(4));
  offer.waiting = static_cast<std::uint32_t>(bytes.number(4));
  offer.name = bytes.take(bytes.number(4));
  offer.points_to = bytes.rest();
  return offer;
}

std::optional<FileFrame> decode_kind(char kind, FrameBytes& bytes) {
  auto transfer = bytes.number(8);
  if (kind == kOfferFrame) return decode_offer(transfer, bytes);
  if (kind == kPieceFrame) return FilePiece{transfer, bytes.rest()};
  if (kind == kCancelledFrame) return FileCancelled{transfer};
  return std::nullopt;
}

}  // namespace

bool is_file_frame(std::string_view frame) { return has_mark(frame, kFileMark); }

std::string encode(const FileFrame& frame) {
  return std::visit([](const auto& told) { return encode_frame(told); }, frame);
}

Result<FileFrame> decode_file_frame(std::string_view frame) {
  return decode_marked(frame, kFileMark, "a file", decode_kind);
}

}  // namespace taas::run
