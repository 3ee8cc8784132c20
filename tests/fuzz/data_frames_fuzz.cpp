// What a peer that has the secret may send: bytes into the inbox of data delivery, in pieces of the input's first byte
// plus one. Properties checked on the way (abort on failure): it ends in frames or in an error with a text, frames are
// within what was sent, and the same bytes at once bring the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "data/wire/frame_reader.hpp"

namespace {

using namespace taas;
using namespace taas::data;

constexpr std::size_t kMostBytes = 1 << 20;

class Pieces : public Transport {
 public:
  Pieces(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}
  Result<std::size_t> read(std::span<std::byte> into) override {
    const auto size = std::min({bytes_.size(), piece_, into.size()});
    if (size > 0) std::memcpy(into.data(), bytes_.data(), size);
    bytes_.remove_prefix(size);
    return size;
  }
  Result<std::size_t> write(std::span<const iovec>) override { return std::size_t{0}; }
  [[nodiscard]] bool is_over() const { return bytes_.empty(); }
  [[nodiscard]] const Fd& socket() const override { return none_; }

 private:
  std::string_view bytes_;
  std::size_t piece_;
  Fd none_;
};

struct Seen : FrameHandler {
  Place place(const FrameHeader& header) override {
    if (header.payload_size > kMostBytes) return {};
    batch.resize(header.payload_size);
    return {.where = Place::Where::kHere, .bytes = std::as_writable_bytes(std::span(batch))};
  }
  Result<> handle(Frame frame) override {
    text += std::to_string(static_cast<int>(frame.header.kind)) + std::string(frame.description) + frame.payload;
    if (frame.header.kind == FrameKind::kBatch) text += batch;
    return {};
  }
  std::string batch;
  std::string text;
};

std::string read(std::string_view bytes, std::size_t piece) {
  Pieces transport(bytes, piece);
  Seen seen;
  FrameReader inbox(transport, seen);
  for (;;) {
    const auto more = inbox.receive();
    if (!more && more.error().message.empty()) std::abort();
    if (!more) return seen.text + " error: " + more.error().message;
    if (!*more && transport.is_over()) return seen.text;
  }
}

/// A payload of gigabytes is allowed in a definition, but not what is looked for here.
bool asks_for_much(std::string_view bytes) {
  for (std::size_t at = 0; at + kHeaderBytes <= bytes.size(); ++at) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data()) + at;
    const auto header = decode_header(std::span<const std::byte, kHeaderBytes>(begin, kHeaderBytes));
    if (header && header->payload_size > kMostBytes && header->kind != FrameKind::kBatch) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (asks_for_much(bytes)) return 0;
  if (read(bytes, std::max<std::size_t>(bytes.size(), 1)) != read(bytes, data[0] + 1u)) std::abort();
  return 0;
}
