#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "data/transport/transport.hpp"
#include "data/wire/codec.hpp"
#include "data/wire/digest.hpp"
#include "data/wire/frame.hpp"

namespace taas::data {

/// One frame, all of it here and found to be whole.
struct Frame {
  FrameHeader header;
  std::string_view description;  ///< until the handler returns
  std::string payload;           ///< of all kinds but batches: theirs lies where the handler said
  std::uint64_t digest = 0;      ///< of the payload, where there was one
  Fd descriptor;                 ///< of a slot offer or a definition
};

/// Where the payload of a batch goes.
struct Place {
  enum class Where { kHere, kNotYet, kNowhere };
  Where where = Where::kNowhere;
  std::span<std::byte> bytes;  ///< of the payload's size
};

/// What a link does with what it receives. An error ends the link.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  virtual Place place(const FrameHeader& header) = 0;
  virtual Result<> handle(Frame frame) = 0;
};

/// Cuts what a transport brings into frames. Payloads are read straight into their place, in large pieces.
class FrameReader {
 public:
  FrameReader(Transport& transport, FrameHandler& handler);

  /// Reads what is there, up to some megabytes. True: there may be more.
  Result<bool> receive();
  /// A batch has no place yet. Nothing is read until receive() finds one.
  [[nodiscard]] bool is_waiting() const { return waiting_; }
  /// Since the beginning.
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  enum class Step { kHeader, kDescription, kPlace, kPayload, kDigest };
  enum class Progress { kDone, kNeedsMore };

  Result<Progress> advance();
  Result<Progress> read_header();
  Result<Progress> read_description();
  Progress find_place();
  Result<Progress> read_payload();
  Result<Progress> read_chunk();
  Result<Progress> read_digest();
  Result<> deliver();

  [[nodiscard]] std::span<const std::byte> buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }
  /// Whether so many bytes are in the buffer; there is room for them.
  bool has(std::size_t bytes);
  Result<std::size_t> read_more();
  Result<std::size_t> read_into_place();
  /// The payload's next bytes are where they belong.
  void count(std::span<const std::byte> bytes);

  Transport& transport_;
  FrameHandler& handler_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t received_ = 0;
  bool waiting_ = false;

  Step step_ = Step::kHeader;
  HeaderBytes header_bytes_{};
  FrameHeader header_;
  std::string description_;
  std::string payload_;
  std::span<std::byte> place_;
  bool nowhere_ = false;
  std::uint64_t left_ = 0;  ///< of the payload
  Digest digest_;
};

}  // namespace taas::data
