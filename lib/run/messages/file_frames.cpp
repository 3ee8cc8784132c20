#include "run/messages/file_frames.hpp"

#include <optional>

namespace taas::run {
namespace {

constexpr char kFileMark = '\0';
enum FrameKind : char { kOfferFrame = 1, kPieceFrame = 2, kCancelledFrame = 3 };

void put_number(std::string& bytes, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

/// Takes bytes from the front, little-endian.
class FrameBytes {
 public:
  explicit FrameBytes(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(int width) {
    auto text = take(static_cast<std::size_t>(width));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return value;
  }
  std::string_view take(std::size_t size) {
    good_ = good_ && size <= bytes_.size();
    if (!good_) return {};
    auto taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::string_view rest() { return take(bytes_.size()); }
  [[nodiscard]] bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

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

bool is_file_frame(std::string_view frame) { return !frame.empty() && frame.front() == kFileMark; }

std::string encode(const FileFrame& frame) {
  return std::visit([](const auto& told) { return encode_frame(told); }, frame);
}

Result<FileFrame> decode_file_frame(std::string_view frame) {
  if (frame.size() < 2 || !is_file_frame(frame)) return protocol_error("not a frame of a file");
  FrameBytes bytes(frame.substr(2));
  auto decoded = decode_kind(frame[1], bytes);
  if (!decoded || !bytes.complete()) return protocol_error("a broken frame of a file");
  return std::move(*decoded);
}

}  // namespace taas::run
