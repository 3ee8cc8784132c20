#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.hpp"

namespace taas::run {

// How an agent sends files to the coordinator, on the link that carries messages. Content and names are bytes, so these
// frames are no JSON: a zero byte tells them apart. The coordinator answers with FileProgress and FileStored, and a
// file's content may come only when FileProgress has said so.

/// A file is there to be sent.
struct FileOffer {
  std::uint64_t transfer = 0;  ///< counts up on one link
  std::uint64_t size = 0;
  std::uint32_t mode = 0644;
  std::uint32_t waiting = 0;  ///< how many more wait behind it
  std::string name;           ///< below the folder of output
  std::string points_to;      ///< of a symbolic link; empty: a regular file
};
/// The next piece of it. Good as long as the frame is.
struct FilePiece {
  std::uint64_t transfer = 0;
  std::string_view bytes;
};
/// The rest of it will not come: it could not be read.
struct FileCancelled {
  std::uint64_t transfer = 0;
};

using FileFrame = std::variant<FileOffer, FilePiece, FileCancelled>;

inline constexpr std::size_t kFilePieceBytes = 64 * 1024;

[[nodiscard]] bool is_file_frame(std::string_view frame);
std::string encode(const FileFrame& frame);
Result<FileFrame> decode_file_frame(std::string_view frame);

}  // namespace taas::run
