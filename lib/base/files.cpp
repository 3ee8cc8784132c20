#include "base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace taas {

namespace {

constexpr std::size_t kChunk = 4096;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

Result<std::string> read_from(const Fd& fd, const std::string& path, std::size_t most) {
  std::string text;
  std::array<char, kChunk> chunk;
  while (text.size() < most) {
    auto count = ::read(fd.get(), chunk.data(), std::min(chunk.size(), most - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot read " + path, errno);
    if (count == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot open " + path, errno);
  return read_from(fd, path, kNoLimit);
}

Result<std::string> read_all(const Fd& fd) { return read_up_to(fd, kNoLimit); }

Result<std::string> read_up_to(const Fd& fd, std::size_t most) { return read_from(fd, "from an open file", most); }

Result<std::string> read_regular_file(const std::string& path, std::size_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_error("cannot open " + path, errno);
  if (!S_ISREG(status.st_mode)) return usage_error(path + " is not a regular file");
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return system_error("cannot open " + path, errno);
  if (::fstat(fd.get(), &status) != 0) return system_error("cannot read " + path, errno);
  if (!S_ISREG(status.st_mode)) return usage_error(path + " is not a regular file");
  return read_from(fd, path, most);
}

Result<> write_all(const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto count = ::write(fd.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace taas
