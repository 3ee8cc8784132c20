#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace taas::net {

inline constexpr std::size_t kMostFrameBytes = 16u << 20;

/// The four bytes in front of a frame: its length, big-endian.
void append_frame(std::string& bytes, std::string_view frame);

/// Cuts a stream of bytes into frames. Holds no more memory than what has arrived.
class FrameReader {
 public:
  void append(std::string_view bytes);
  /// nullopt: more bytes are needed. The frame is good until the next call of either function. After an error (a frame
  /// over kMostFrameBytes) nothing more can be read.
  Result<std::optional<std::string_view>> next();

 private:
  std::string bytes_;
  std::size_t read_ = 0;  ///< of bytes_, from its front
};

}  // namespace taas::net
