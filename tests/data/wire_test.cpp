// FrameWriter and inbox at the two ends of a socket.
#include <sys/socket.h>

#include <numeric>
#include <random>

#include "base/memory.hpp"
#include "catch.hpp"
#include "data/wire/frame_reader.hpp"
#include "data/wire/frame_writer.hpp"

namespace wire_test {

using namespace taas;
using namespace taas::data;

namespace {

/// Keeps what arrives.
struct Kept : FrameHandler {
  Place place(const FrameHeader& header) override {
    if (later) return {.where = Place::Where::kNotYet, .bytes = {}};
    batch.resize(header.payload_size);
    if (drop) return {};
    return {.where = Place::Where::kHere, .bytes = std::as_writable_bytes(std::span(batch))};
  }
  Result<> handle(Frame frame) override {
    headers.push_back(frame.header);
    descriptions.emplace_back(frame.description);
    payloads.push_back(frame.header.kind == FrameKind::kBatch ? batch : frame.payload);
    descriptors.push_back(std::move(frame.descriptor));
    return {};
  }
  bool later = false;
  bool drop = false;
  std::string batch;
  std::vector<FrameHeader> headers;
  std::vector<std::string> descriptions;
  std::vector<std::string> payloads;
  std::vector<Fd> descriptors;
};

enum class Kind { kPlain, kUnix };

struct Line {
  explicit Line(Kind kind = Kind::kPlain) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const auto make = kind == Kind::kUnix ? make_unix_transport : make_tcp_transport;
    left = make(Fd(ends[0]));
    right = make(Fd(ends[1]));
    inbox = std::make_unique<FrameReader>(*right, kept);
  }
  void exchange() {
    for (bool more = true; !outbox.empty() || more;) {
      REQUIRE(outbox.flush(*left).has_value());
      const auto received = inbox->receive();
      REQUIRE(received.has_value());
      more = *received;
      if (inbox->is_waiting()) return;
    }
  }
  void push(FrameKind kind, const std::string& description, std::string payload) {
    outbox.push(text_frame({.kind = kind}, description, std::move(payload)));
  }
  std::unique_ptr<Transport> left;
  std::unique_ptr<Transport> right;
  Kept kept;
  FrameWriter outbox;
  std::unique_ptr<FrameReader> inbox;
};

std::string numbers(std::size_t size) {
  std::string text(size, '\0');
  std::iota(text.begin(), text.end(), '\1');
  return text;
}

}  // namespace

TEST_CASE("frames arrive whole and in order, small and large") {
  const auto compression = GENERATE(Compression::kNone, Compression::kLz4, Compression::kZstd);
  Line line(GENERATE(Kind::kPlain, Kind::kUnix));
  line.outbox.compress(compression);
  std::vector<std::string> payloads;
  std::vector<std::string> descriptions;
  for (const std::size_t size : {0, 1, 5, 65536, 100, 3'000'000, 1 << 20, 0, 70'000}) {
    payloads.push_back(numbers(size));
    const bool is_batch = payloads.size() % 2;
    descriptions.push_back(is_batch ? "" : "digest " + std::to_string(size));
    line.push(is_batch ? FrameKind::kBatch : FrameKind::kTask, descriptions.back(), payloads.back());
  }
  line.exchange();
  REQUIRE(line.kept.payloads.size() == payloads.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    CHECK((line.kept.payloads[i] == payloads[i] || (payloads[i].empty() && !line.kept.headers[i].has_payload())));
    CHECK(line.kept.headers[i].payload_size == payloads[i].size());
  }
  CHECK(line.kept.descriptions == descriptions);
}

TEST_CASE("a batch without a place waits, and what comes after it too") {
  Line line;
  line.kept.later = true;
  line.push(FrameKind::kBatch, "", numbers(10));
  line.push(FrameKind::kTask, "two", numbers(10));
  line.exchange();
  CHECK(line.inbox->is_waiting());
  CHECK(line.kept.headers.empty());
  line.kept.later = false;
  line.exchange();
  CHECK_FALSE(line.inbox->is_waiting());
  CHECK(line.kept.descriptions == std::vector<std::string>{"", "two"});
}

TEST_CASE("a payload is decoded into its place while the rest of it is on the way") {
  const auto compression = GENERATE(Compression::kNone, Compression::kLz4, Compression::kZstd);
  Line line;
  line.outbox.compress(compression);
  std::minstd_rand random(1);
  std::string payload(8 << 20, '\0');
  for (char& byte : payload) byte = static_cast<char>(random() % 64);
  line.push(FrameKind::kBatch, "", payload);
  const auto first_is_here = [&] {
    return line.kept.batch.size() == payload.size() &&
           line.kept.batch.compare(0, kChunkBytes, payload, 0, kChunkBytes) == 0;
  };
  while (!first_is_here()) {
    REQUIRE(line.outbox.flush(*line.left).has_value());
    REQUIRE(line.inbox->receive().has_value());
  }
  CHECK(line.kept.headers.empty());
  const auto* place = line.kept.batch.data();
  line.exchange();
  REQUIRE(line.kept.payloads.size() == 1);
  CHECK(line.kept.batch.data() == place);
  CHECK((line.kept.payloads[0] == payload));
}

TEST_CASE("a batch that nobody wants is read past") {
  const auto compression = GENERATE(Compression::kNone, Compression::kLz4);
  Line line;
  line.kept.drop = true;
  line.outbox.compress(compression);
  line.push(FrameKind::kBatch, "", numbers(2'000'000));
  line.push(FrameKind::kTask, "two", numbers(10));
  line.exchange();
  CHECK(line.kept.payloads.back() == numbers(10));
}

TEST_CASE("descriptors travel with their frames") {
  Line line(Kind::kUnix);
  for (std::uint32_t i = 0; i < 5; ++i) {
    auto memory = std::make_shared<Fd>(make_shared_memory(4096 * (i + 1)).value());
    line.outbox.push({.header = {.kind = FrameKind::kSlotOffer, .flags = kDescriptor, .slot = i},
                      .description = encode(SlotPlace{}),
                      .buffers = {},
                      .keep = memory,
                      .descriptor = memory.get()});
    line.push(FrameKind::kTask, "", numbers(i));
  }
  line.exchange();
  REQUIRE(line.kept.descriptors.size() == 10);
  for (std::uint32_t i = 0; i < 5; ++i) {
    CHECK(is_shared_memory(line.kept.descriptors[2 * i], 4096 * (i + 1)));
    CHECK_FALSE(is_shared_memory(line.kept.descriptors[2 * i], 4096 * (i + 1) + 1));
  }
}

TEST_CASE("a chunk that is not what it says is refused") {
  std::string chunk;
  const auto bytes = numbers(1000) + std::string(1000, 'x');
  append_chunk(chunk, std::as_bytes(std::span(bytes)), Compression::kZstd);
  CHECK(chunk.size() < bytes.size());
  const auto body = std::as_bytes(std::span(chunk)).subspan(kChunkHeader);
  std::vector<std::byte> into(bytes.size());
  CHECK(decode_chunk(body, false, into, Compression::kZstd).has_value());
  CHECK_FALSE(decode_chunk(body, false, into, Compression::kLz4).has_value());
  CHECK_FALSE(decode_chunk(body, true, into, Compression::kZstd).has_value());
  CHECK_FALSE(decode_chunk(body.first(body.size() / 2), false, into, Compression::kZstd).has_value());
  into.pop_back();
  CHECK_FALSE(decode_chunk(body, false, into, Compression::kZstd).has_value());
  CHECK_FALSE(chunk_size(0, 10).has_value());
  CHECK_FALSE(chunk_size(11, 10).has_value());
  CHECK_FALSE(chunk_size(9 | kStoredChunk, 10).has_value());
  CHECK(chunk_size(10 | kStoredChunk, 10).value() == 10);
}

}  // namespace wire_test
