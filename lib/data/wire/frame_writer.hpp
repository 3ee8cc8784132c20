#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/transport/transport.hpp"
#include "data/wire/codec.hpp"
#include "data/wire/digest.hpp"
#include "data/wire/frame.hpp"

namespace taas::data {

/// A frame to be sent. Sizes in the header are filled in by the outbox.
struct OutFrame {
  FrameHeader header;
  std::string description;
  std::vector<std::span<const std::byte>> buffers;  ///< the payload, in pieces
  std::shared_ptr<const void> keep;                 ///< what owns the buffers and the descriptor
  const Fd* descriptor = nullptr;
};

std::size_t size_of(const std::vector<std::span<const std::byte>>& buffers);

/// One without a payload.
OutFrame frame_of(const FrameHeader& header, std::string description = {});
/// A frame whose payload is this text, which it owns.
OutFrame text_frame(const FrameHeader& header, std::string description, std::string payload);

/// Frames on their way out, in order. Small ones are put together; large payloads go straight from their buffers, their
/// digest taken piece by piece ahead of the sending.
class FrameWriter {
 public:
  /// For payloads of batches.
  void compress(Compression compression) { compression_ = compression; }
  void push(OutFrame frame) { queue_.push_back(std::move(frame)); }
  /// Sends what can be sent now.
  Result<> flush(Transport& transport);
  [[nodiscard]] bool empty() const {
    return queue_.empty() && written_ == text_.size() && piece_.empty() && tail_.empty() && !current_;
  }

 private:
  void stage();
  void begin(OutFrame frame);
  void next_piece();
  void end_payload();
  std::vector<std::span<const std::byte>> take_piece(std::size_t bytes);
  void compress_piece();
  Result<std::size_t> write(Transport& transport);
  void count(std::size_t bytes);

  std::deque<OutFrame> queue_;
  Compression compression_ = Compression::kNone;
  std::string text_;  ///< goes first
  std::size_t written_ = 0;
  const Fd* descriptor_ = nullptr;  ///< goes with the text's first bytes
  std::shared_ptr<const void> descriptor_keep_;

  std::optional<OutFrame> current_;  ///< whose payload is being sent
  std::size_t buffer_ = 0;           ///< of current_: what is not in piece_ yet begins here
  std::size_t offset_ = 0;
  std::vector<iovec> piece_;  ///< goes next
  std::shared_ptr<const void> piece_keep_;
  std::string tail_;  ///< goes after it: the payload's digest
  Digest digest_;
};

}  // namespace taas::data
