#include "run/messages/code_frames.hpp"

#include <optional>

#include "run/messages/frame_bytes.hpp"

namespace taas::run {
namespace {

constexpr char kCodeMark = '\1';
enum CodeFrameKind : char { kCodeOffer = 1, kCodeWanted = 2, kCodePiece = 3 };
enum CodeFileKind : std::uint64_t { kRegular = 0, kExecutable = 1, kLink = 2 };

void put_code_text(std::string& bytes, const std::string& text) {
  put_number(bytes, text.size(), 4);
  bytes += text;
}

std::string begin_code_frame(CodeFrameKind kind, std::uint32_t version) {
  std::string bytes{kCodeMark, kind};
  put_number(bytes, version, 4);
  return bytes;
}

std::string encode_frame(const CodeOffer& offer) {
  auto bytes = begin_code_frame(kCodeOffer, offer.version);
  put_number(bytes, offer.replaces ? 1 : 0, 1);
  put_code_text(bytes, offer.folder);
  put_code_text(bytes, offer.run_folder);
  for (const auto& file : offer.files) {
    const bool link = !file.points_to.empty();
    put_number(bytes, link ? kLink : file.executable ? kExecutable : kRegular, 1);
    put_code_text(bytes, file.name);
    if (link) {
      put_code_text(bytes, file.points_to);
    } else {
      put_number(bytes, file.size, 8);
      bytes += file.digest;
    }
  }
  return bytes;
}

std::string encode_frame(const CodeWanted& wanted) {
  auto bytes = begin_code_frame(kCodeWanted, wanted.version);
  put_number(bytes, wanted.file, 4);
  put_number(bytes, wanted.offset, 8);
  put_number(bytes, wanted.size, 4);
  return bytes;
}

std::string encode_frame(const CodePiece& piece) {
  auto bytes = begin_code_frame(kCodePiece, piece.version);
  put_number(bytes, piece.file, 4);
  put_number(bytes, piece.offset, 8);
  bytes += piece.bytes;
  return bytes;
}

std::optional<CodeFile> decode_code_file(FrameBytes& bytes) {
  CodeFile file;
  const auto kind = bytes.number(1);
  file.name = bytes.take(bytes.number(4));
  if (kind == kLink) {
    file.points_to = bytes.take(bytes.number(4));
    return file.points_to.empty() ? std::nullopt : std::optional(std::move(file));
  }
  file.executable = kind == kExecutable;
  file.size = bytes.number(8);
  file.digest = bytes.take(kDigestBytes);
  return kind == kRegular || kind == kExecutable ? std::optional(std::move(file)) : std::nullopt;
}

std::optional<CodeFrame> decode_code_offer(std::uint32_t version, FrameBytes& bytes) {
  CodeOffer offer;
  offer.version = version;
  const auto replaces = bytes.number(1);
  if (replaces > 1) return std::nullopt;
  offer.replaces = replaces == 1;
  offer.folder = bytes.take(bytes.number(4));
  offer.run_folder = bytes.take(bytes.number(4));
  while (bytes.good() && !bytes.complete()) {
    auto file = decode_code_file(bytes);
    if (!file) return std::nullopt;
    offer.files.push_back(std::move(*file));
  }
  return offer;
}

std::optional<CodeFrame> decode_code_kind(char kind, FrameBytes& bytes) {
  const auto version = static_cast<std::uint32_t>(bytes.number(4));
  if (kind == kCodeOffer) return decode_code_offer(version, bytes);
  const auto file = static_cast<std::uint32_t>(bytes.number(4));
  const auto offset = bytes.number(8);
  if (kind == kCodeWanted) return CodeWanted{version, file, offset, static_cast<std::uint32_t>(bytes.number(4))};
  if (kind == kCodePiece) return CodePiece{version, file, offset, bytes.rest()};
  return std::nullopt;
}

}  // namespace

bool is_code_frame(std::string_view frame) { return has_mark(frame, kCodeMark); }

std::string encode(const CodeFrame& frame) {
  return std::visit([](const auto& told) { return encode_frame(told); }, frame);
}

Result<CodeFrame> decode_code_frame(std::string_view frame) {
  return decode_marked(frame, kCodeMark, "the program's files", decode_code_kind);
}

}  // namespace taas::run
