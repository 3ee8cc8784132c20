#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// A file that bytes are appended to for as long as a run lasts. A disk that takes none for a while costs those that
/// came meanwhile: each later append tries again, and a line in the file says how many are missing there.
class LogFile {
 public:
  /// An empty path: no file, and nothing fails.
  explicit LogFile(std::string path) : path_(std::move(path)) {}

  Result<> open();
  /// The first failure of all, open() included, is returned; what follows is told by the file itself.
  Result<> append(std::string_view bytes);
  void close();

 private:
  bool try_to_open();
  Result<> tell();
  bool write_note();
  std::string_view write_some(std::string_view bytes);

  std::string path_;
  Fd file_;
  std::uint64_t missing_ = 0;  // bytes, since the last one that is in the file
  int reason_ = 0;             // why
  bool told_ = false;
};

}  // namespace taas
