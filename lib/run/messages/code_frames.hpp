#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace taas::run {

// How the coordinator gives other machines the files of the program, on the link that carries messages. Content and
// names are bytes, so these frames are no JSON: they begin with a byte of one. An agent asks for what it lacks, a range
// at a time, so that a heartbeat never waits behind much of a file.

/// A file, or a symbolic link, of the program's folder.
struct CodeFile {
  std::string name;       ///< below the folder
  std::string points_to;  ///< of a symbolic link; empty: a regular file
  bool executable = false;
  std::uint64_t size = 0;
  std::string digest = {};  ///< SHA-256 of its content, 32 bytes; of a link: none
  friend bool operator==(const CodeFile&, const CodeFile&) = default;
};
/// What the folder has now. The message that follows is about it.
struct CodeOffer {
  std::uint32_t version = 0;  ///< counts up: which state of the folder it is
  bool replaces = false;      ///< also where a folder of this name has some of the files, and others than these
  std::string folder;         ///< absolute, on the machine that the user is on
  std::string run_folder;     ///< where a machine that has other files there keeps a copy
  std::vector<CodeFile> files;
};
/// From an agent: so much of the file with this place in the list.
struct CodeWanted {
  std::uint32_t version = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
};
/// The answer, in as many pieces as it takes. Good as long as the frame is.
struct CodePiece {
  std::uint32_t version = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string_view bytes;
};

using CodeFrame = std::variant<CodeOffer, CodeWanted, CodePiece>;

inline constexpr std::size_t kCodePieceBytes = 64 * 1024;
inline constexpr std::size_t kDigestBytes = 32;

[[nodiscard]] bool is_code_frame(std::string_view frame);
std::string encode(const CodeFrame& frame);
Result<CodeFrame> decode_code_frame(std::string_view frame);

}  // namespace taas::run
