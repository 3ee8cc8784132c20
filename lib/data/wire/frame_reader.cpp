#include "data/wire/frame_reader.hpp"

#include <algorithm>
#include <cstring>

#include "data/wire/little_endian.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{16} << 10;  // what it holds of a payload is copied
constexpr std::size_t kLargestRead = std::size_t{1} << 20;  // so that it is still in the cache when its digest is taken
constexpr std::size_t kReadsAtOnce = 8;
constexpr std::size_t kDigestBytes = 8;

bool is_coded(const FrameHeader& header) { return header.has(kInLz4) || header.has(kInZstd); }

}  // namespace

FrameReader::FrameReader(Transport& transport, FrameHandler& handler)
    : transport_(transport), handler_(handler), buffer_(kBufferBytes) {}

Result<bool> FrameReader::receive() {
  for (std::size_t reads = 0;; ++reads) {
    Result<Progress> progress = Progress::kDone;
    while (progress && *progress == Progress::kDone) progress = advance();
    if (!progress) return progress.error();
    if (waiting_) return false;
    if (reads == kReadsAtOnce) return true;
    const bool direct = step_ == Step::kPayload && !is_coded(header_) && !nowhere_;
    const auto got = direct ? read_into_place() : read_more();
    if (!got) return got.error();
    if (*got == 0) return false;
    received_ += *got;
  }
}

Result<FrameReader::Progress> FrameReader::advance() {
  switch (step_) {
    case Step::kHeader:
      return read_header();
    case Step::kDescription:
      return read_description();
    case Step::kPlace:
      return find_place();
    case Step::kPayload:
      return is_coded(header_) ? read_chunk() : read_payload();
    case Step::kDigest:
      return read_digest();
  }
  return protocol_error("a frame without an end");
}

bool FrameReader::has(std::size_t bytes) {
  if (end_ - begin_ >= bytes) return true;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  return false;
}

Result<std::size_t> FrameReader::read_more() {
  transport_.expect(1);
  auto got = transport_.read(std::span(buffer_).subspan(end_));
  if (got) end_ += *got;
  return got;
}

Result<std::size_t> FrameReader::read_into_place() {
  transport_.expect(left_);
  const auto into = place_.subspan(place_.size() - left_);
  auto got = transport_.read(into.first(std::min(into.size(), kLargestRead)));
  if (got) count(into.first(*got));
  return got;
}

void FrameReader::count(std::span<const std::byte> bytes) {
  if (transport_.needs_checksum() && !nowhere_) digest_.add(bytes);
  left_ -= bytes.size();
}

Result<FrameReader::Progress> FrameReader::read_header() {
  if (!has(kHeaderBytes)) return Progress::kNeedsMore;
  std::copy_n(buffered().begin(), kHeaderBytes, header_bytes_.begin());
  const auto header = decode_header(header_bytes_);
  if (!header) return header.error();
  begin_ += kHeaderBytes;
  header_ = *header;
  step_ = Step::kDescription;
  return Progress::kDone;
}

Result<FrameReader::Progress> FrameReader::read_description() {
  if (!has(header_.description_size)) return Progress::kNeedsMore;
  description_.assign(reinterpret_cast<const char*>(buffered().data()), header_.description_size);
  begin_ += header_.description_size;
  if (!fits(header_bytes_, description_)) return protocol_error("a frame's description was damaged on the way");
  if (header_.has_payload()) {
    step_ = Step::kPlace;
    return Progress::kDone;
  }
  if (const auto done = deliver(); !done) return done.error();
  return Progress::kDone;
}

FrameReader::Progress FrameReader::find_place() {
  waiting_ = false;
  nowhere_ = false;
  if (header_.kind == FrameKind::kBatch) {
    const auto place = handler_.place(header_);
    waiting_ = place.where == Place::Where::kNotYet;
    if (waiting_) return Progress::kNeedsMore;
    nowhere_ = place.where == Place::Where::kNowhere;
    place_ = place.bytes;
  } else {
    payload_.resize(header_.payload_size);
    place_ = std::as_writable_bytes(std::span(payload_));
  }
  left_ = header_.payload_size;
  digest_.reset();
  step_ = Step::kPayload;
  return Progress::kDone;
}

Result<FrameReader::Progress> FrameReader::read_payload() {
  const auto here = buffered().first(std::min<std::size_t>(buffered().size(), left_));
  if (!nowhere_) std::copy(here.begin(), here.end(), place_.subspan(place_.size() - left_).begin());
  begin_ += here.size();
  count(here);
  if (begin_ == end_) begin_ = end_ = 0;
  if (left_ > 0) return Progress::kNeedsMore;
  step_ = Step::kDigest;
  return Progress::kDone;
}

Result<FrameReader::Progress> FrameReader::read_chunk() {
  if (!has(kChunkHeader)) return Progress::kNeedsMore;
  const auto head = load<std::uint32_t>(buffered().data());
  const auto holds = std::min<std::size_t>(kChunkBytes, left_);
  const auto size = chunk_size(head, holds);
  if (!size) return size.error();
  if (!has(kChunkHeader + *size)) return Progress::kNeedsMore;
  const auto chunk = buffered().subspan(kChunkHeader, *size);
  if (nowhere_) {
    left_ -= holds;
  } else {
    const auto into = place_.subspan(place_.size() - left_, holds);
    const auto how = header_.has(kInLz4) ? Compression::kLz4 : Compression::kZstd;
    if (const auto done = decode_chunk(chunk, (head & kStoredChunk) != 0, into, how); !done) return done.error();
    count(into);
  }
  begin_ += kChunkHeader + *size;
  if (left_ == 0) step_ = Step::kDigest;
  return Progress::kDone;
}

Result<FrameReader::Progress> FrameReader::read_digest() {
  if (!has(kDigestBytes)) return Progress::kNeedsMore;
  const auto expected = load<std::uint64_t>(buffered().data());
  begin_ += kDigestBytes;
  if (transport_.needs_checksum() && !nowhere_ && digest_.value() != expected) {
    return protocol_error("a payload was damaged on the way: its digest is another one");
  }
  header_.value = header_.kind == FrameKind::kBatch ? expected : header_.value;
  if (const auto done = deliver(); !done) return done.error();
  return Progress::kDone;
}

Result<> FrameReader::deliver() {
  step_ = Step::kHeader;
  Frame frame{.header = header_,
              .description = description_,
              .payload = std::exchange(payload_, {}),
              .digest = header_.value,
              .descriptor = {}};
  if (header_.has(kDescriptor)) {
    frame.descriptor = transport_.take_descriptor();
    if (!frame.descriptor) return protocol_error("a frame came without the memory that it speaks of");
  }
  return handler_.handle(std::move(frame));
}

}  // namespace taas::data
