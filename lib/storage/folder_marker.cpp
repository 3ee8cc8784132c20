#include "storage/folder_marker.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/files.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"

namespace taas::storage {
namespace {

constexpr int kMarkBytes = 16;
constexpr const char* kName = ".mark";

}  // namespace

/// A link, since it is made in one step with what it says, on network file systems too. It leads nowhere.
Result<std::string> mark_folder(const HeldFolder& folder, const std::string& run) {
  auto mark = fmt::format("{}.{}", run, random_hex(kMarkBytes));
  if (::symlinkat(mark.c_str(), folder.descriptor().get(), kName) == 0) return mark;
  if (errno != EEXIST) return std::string();
  std::array<char, PATH_MAX> text{};
  const auto size = ::readlinkat(folder.descriptor().get(), kName, text.data(), text.size());
  if (size < 0) return std::string();
  const std::string found(text.data(), static_cast<std::size_t>(size));
  if (found.rfind(run + ".", 0) == 0) return found;
  return unavailable_error(
      fmt::format("{} is left over from another run: remove it, or choose another --rdzv-id", folder.path()));
}

std::string view_of_folder(const HeldFolder& folder) {
  struct stat found {};
  auto boot = read_file("/proc/sys/kernel/random/boot_id");
  if (!boot || ::fstat(folder.descriptor().get(), &found) != 0) return random_hex(kMarkBytes);  // seen by nobody else
  return fmt::format("{}:{:x}:{:x}", trim(*boot, "\n"), found.st_dev, found.st_ino);
}

}  // namespace taas::storage
