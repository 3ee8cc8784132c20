#include "storage/folder_marker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/ids.hpp"

namespace taas::storage {
namespace {

constexpr int kMarkBytes = 16;

}  // namespace

/// A link, since it is made in one step with what it says, on network file systems too. It leads nowhere.
Result<std::string> mark_folder(const std::string& folder, const std::string& run) {
  auto path = folder + "/.mark";
  auto mark = fmt::format("{}.{}", run, random_hex(kMarkBytes));
  if (::symlink(mark.c_str(), path.c_str()) == 0) return mark;
  if (errno != EEXIST) return std::string();
  std::error_code failure;
  auto found = std::filesystem::read_symlink(path, failure).string();
  if (failure) return std::string();
  if (found.rfind(run + ".", 0) == 0) return found;
  return unavailable_error(
      fmt::format("{} is left over from another run: remove it, or choose another --rdzv-id", folder));
}

}  // namespace taas::storage
