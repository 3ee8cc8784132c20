#include "data/wire/frame_writer.hpp"

#include <algorithm>
#include <numeric>

#include "data/wire/little_endian.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{512}
                                    << 10;  // still in the cache when it is sent after its digest was taken
constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr std::size_t kMostParts = 64;

void append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void append_digest(std::string& text, std::uint64_t digest) {
  std::array<std::byte, 8> bytes{};
  store(bytes.data(), digest);
  append(text, bytes);
}

}  // namespace

std::size_t size_of(const std::vector<std::span<const std::byte>>& buffers) {
  return std::accumulate(buffers.begin(), buffers.end(), std::size_t{0},
                         [](std::size_t sum, const auto& buffer) { return sum + buffer.size(); });
}

OutFrame frame_of(const FrameHeader& header, std::string description) {
  return {.header = header, .description = std::move(description), .buffers = {}, .keep = {}};
}

OutFrame text_frame(const FrameHeader& header, std::string description, std::string payload) {
  auto text = std::make_shared<const std::string>(std::move(payload));
  return {.header = header,
          .description = std::move(description),
          .buffers = {std::as_bytes(std::span(*text))},
          .keep = text};
}

Result<> FrameWriter::flush(Transport& transport) {
  for (stage(); !empty(); stage()) {
    const auto sent = write(transport);
    if (!sent) return sent.error();
    if (*sent == 0) break;
    count(*sent);
  }
  return transport.flush();
}

/// Fills up what goes next, as long as it is little.
void FrameWriter::stage() {
  while (piece_.empty() && text_.size() - written_ < kMostText) {
    text_ += std::exchange(tail_, {});
    if (current_) {
      next_piece();
      continue;
    }
    const bool wait = queue_.empty() || (queue_.front().descriptor && !text_.empty());
    if (wait) return;
    begin(std::move(queue_.front()));
    queue_.pop_front();
  }
}

void FrameWriter::begin(OutFrame frame) {
  auto& header = frame.header;
  if (!header.has(kInSlot)) header.payload_size = size_of(frame.buffers);
  if (header.kind == FrameKind::kBatch && header.has_payload() && compression_ != Compression::kNone) {
    header.flags |= compression_ == Compression::kLz4 ? kInLz4 : kInZstd;
  }
  append(text_, encode(header, frame.description));
  text_ += frame.description;
  if (frame.descriptor) {
    descriptor_ = frame.descriptor;
    descriptor_keep_ = frame.keep;
  }
  if (!header.has_payload()) return;
  current_ = std::move(frame);
  buffer_ = offset_ = 0;
  digest_.reset();
}

void FrameWriter::next_piece() {
  if (current_->header.has(kInLz4) || current_->header.has(kInZstd)) {
    compress_piece();
  } else {
    for (const auto& part : take_piece(kPieceBytes)) {
      digest_.add(part);
      piece_.push_back({const_cast<std::byte*>(part.data()), part.size()});
    }
    piece_keep_ = current_->keep;
  }
  if (buffer_ == current_->buffers.size()) end_payload();
}

void FrameWriter::end_payload() {
  append_digest(tail_, digest_.value());
  current_.reset();
}

/// The next bytes of the payload, wherever they lie. At the end of the last buffer, `buffer_` is past it.
std::vector<std::span<const std::byte>> FrameWriter::take_piece(std::size_t bytes) {
  std::vector<std::span<const std::byte>> parts;
  const auto& buffers = current_->buffers;
  while (buffer_ < buffers.size() && bytes > 0 && parts.size() < kMostParts) {
    const auto rest = buffers[buffer_].subspan(offset_);
    const auto part = rest.first(std::min(rest.size(), bytes));
    if (!part.empty()) parts.push_back(part);
    bytes -= part.size();
    offset_ += part.size();
    if (offset_ == buffers[buffer_].size()) {
      ++buffer_;
      offset_ = 0;
    }
  }
  return parts;
}

void FrameWriter::compress_piece() {
  std::string chunk;
  while (chunk.size() < kChunkBytes && buffer_ < current_->buffers.size()) {
    for (const auto& part : take_piece(kChunkBytes - chunk.size())) append(chunk, part);
  }
  const auto bytes = std::as_bytes(std::span(chunk));
  if (bytes.empty()) return;
  digest_.add(bytes);
  append_chunk(text_, bytes, compression_);
}

Result<std::size_t> FrameWriter::write(Transport& transport) {
  std::array<iovec, kMostParts + 2> parts;
  std::size_t count = 0;
  if (written_ < text_.size()) parts[count++] = {text_.data() + written_, text_.size() - written_};
  for (const auto& part : piece_) parts[count++] = part;
  if (!tail_.empty()) parts[count++] = {tail_.data(), tail_.size()};
  const auto all = std::span(parts).first(count);
  if (!descriptor_) return transport.write(all);
  auto sent = transport.write_with(*descriptor_, all);
  if (sent && *sent > 0) {
    descriptor_ = nullptr;
    descriptor_keep_.reset();
  }
  return sent;
}

void FrameWriter::count(std::size_t bytes) {
  const auto text = std::min(bytes, text_.size() - written_);
  written_ += text;
  bytes -= text;
  if (written_ == text_.size()) {
    text_.clear();
    written_ = 0;
  }
  auto done = piece_.begin();
  for (; done != piece_.end() && bytes >= done->iov_len; ++done) bytes -= done->iov_len;
  piece_.erase(piece_.begin(), done);
  if (piece_.empty()) {
    piece_keep_.reset();
    tail_.erase(0, bytes);
  } else {
    piece_.front().iov_base = static_cast<std::byte*>(piece_.front().iov_base) + bytes;
    piece_.front().iov_len -= bytes;
  }
}

}  // namespace taas::data
