#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"

namespace taas {

/// A file that bytes are appended to for as long as a run lasts. A disk that takes none for a while costs those that
/// came meanwhile: each later append tries again, and a line in the file says how many are missing there. The same
/// holds as long as something that is no file of its own has its name.
class LogFile {
 public:
  /// Without a name there is no file, and nothing fails.
  explicit LogFile(HeldPath place) : place_(std::move(place)) {}

  Result<> open();
  /// The first failure of all, open() included, is returned; what follows is told by the file itself.
  Result<> append(std::string_view bytes);
  void close();

 private:
  bool try_to_open();
  Result<> tell();
  bool write_note();
  std::string_view write_some(std::string_view bytes);

  HeldPath place_;
  Fd file_;
  std::uint64_t missing_ = 0;  // bytes, since the last one that is in the file
  Error reason_;               // why
  bool told_ = false;
};

}  // namespace taas
