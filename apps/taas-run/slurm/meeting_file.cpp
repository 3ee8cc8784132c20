#include "slurm/meeting_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/ids.hpp"

namespace taas::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLook = 20ms;
constexpr auto kLastLook = 250ms;
constexpr std::size_t kMostText = 1 << 20;          // whoever runs as this user can put a file of any size there
constexpr std::string_view kRefusal = "refused: ";  // what a bootstrap never begins with

/// Whoever else may write the folder must not be able to put a file of theirs in the place of ours, nor a pipe that
/// nobody writes to.
bool is_ours(const Fd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

Result<> MeetingFile::announce(const node::Bootstrap& bootstrap) const { return write(print_bootstrap(bootstrap)); }

void MeetingFile::refuse(const std::string& why) const {
  std::error_code ignored;  // then nothing can be told
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  (void)write(fmt::format("{}{}", kRefusal, why));
}

Result<> MeetingFile::write(const std::string& text) const {
  auto temporary = fmt::format("{}.{}", path_, random_hex(4));
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write " + temporary, errno);
  auto written = write_all(file, text);
  if (written && ::rename(temporary.c_str(), path_.c_str()) == 0) return {};
  auto error = written ? system_error("cannot write " + path_, errno) : written.error();
  ::unlink(temporary.c_str());
  return error;
}

void MeetingFile::conclude() const { ::unlink(path_.c_str()); }

Result<node::Bootstrap> MeetingFile::await(std::chrono::milliseconds patience) const {
  auto until = steady_now() + patience;
  for (auto pause = kFirstLook; steady_now() < until;
       pause = std::min<std::chrono::milliseconds>(2 * pause, kLastLook)) {
    auto file = open_file(path_);
    if (file && !is_ours(file)) {
      return usage_error(
          fmt::format("{} is not a file of yours alone: remove it, or choose another folder with --output", path_));
    }
    if (file) {
      auto text = read_up_to(file, kMostText);  // by its name it could be another file by now
      return text ? read(*text) : Result<node::Bootstrap>(text.error());
    }
    std::this_thread::sleep_for(pause);
  }
  return unavailable_error(fmt::format(
      "{} has not said where it is in {}: --output has to be a folder that all nodes share", coordinator_, path_));
}

Result<node::Bootstrap> MeetingFile::read(const std::string& text) const {
  if (!is_refusal(text)) return node::parse_bootstrap(text);
  return usage_error(fmt::format("{} cannot take part: {}", coordinator_, text.substr(kRefusal.size())));
}

std::string MeetingFile::text() const {
  auto file = open_file(path_);
  if (!file || !is_ours(file)) return {};
  auto text = read_up_to(file, kMostText);
  return text ? std::move(*text) : std::string();
}

bool MeetingFile::is_refusal(const std::string& text) { return text.starts_with(kRefusal); }

}  // namespace taas::cli
