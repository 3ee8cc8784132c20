#include "storage/delivery/placing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/beneath.hpp"
#include "base/fd.hpp"
#include "storage/publishing/publish_file.hpp"
#include "storage/publishing/staged_files.hpp"

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCompared = 1u << 16;

/// As much as there is, up to the whole of it.
ssize_t read_full(const Fd& fd, std::array<char, kCompared>& bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    auto count = ::read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(filled);
}

bool same_bytes(const std::string& a, const std::string& b) {
  Fd first(::open(a.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  Fd second(::open(b.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!first || !second) return false;
  static thread_local std::array<char, kCompared> one, other;
  for (;;) {
    auto count = read_full(first, one);
    if (count < 0 || count != read_full(second, other)) return false;
    if (count == 0) return true;
    auto size = static_cast<std::size_t>(count);
    if (std::string_view(one.data(), size) != std::string_view(other.data(), size)) return false;
  }
}

bool is_same(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  if (::lstat(a.c_str(), &first) != 0 || ::lstat(b.c_str(), &second) != 0) return false;
  if ((first.st_mode & S_IFMT) != (second.st_mode & S_IFMT)) return false;
  std::error_code failure;
  if (S_ISLNK(first.st_mode)) return fs::read_symlink(a, failure) == fs::read_symlink(b, failure);
  return S_ISREG(first.st_mode) && first.st_size == second.st_size && same_bytes(a, b);
}

enum class Move { kMoved, kSame, kTaken, kFailed };

/// A link to a file that lay beside it has to lead to where that file is now.
void redirect_link(const std::string& path, const std::string& from, const std::string& to) {
  std::error_code none;
  auto points_to = fs::read_symlink(path, none).string();
  if (none || points_to.rfind(from + "/", 0) != 0) return;
  fs::remove(path, none);
  fs::create_symlink(to + points_to.substr(from.size()), path, none);
}

Move move_file(const std::string& from, const std::string& files, const std::string& name) {
  auto place = open_place_below(files, name, Missing::kMake);
  bool in_the_way = !place && (place.error().system_errno == ENOTDIR || place.error().system_errno == ELOOP);
  if (in_the_way) return Move::kTaken;  // a file where a folder should be
  if (!place) return errno = place.error().system_errno, Move::kFailed;
  struct stat found {};
  if (::fstatat(place->folder.get(), place->name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!is_same(from, files + "/" + name)) return Move::kTaken;
    return ::unlink(from.c_str()) == 0 ? Move::kSame : Move::kFailed;
  }
  if (::renameat(AT_FDCWD, from.c_str(), place->folder.get(), place->name.c_str()) != 0) return Move::kFailed;
  auto flushed = flush_folders(fs::path(files + "/" + name).parent_path().string(), files);
  if (!flushed) errno = flushed.error().system_errno;
  return flushed ? Move::kMoved : Move::kFailed;
}

/// One machine's files.
class Placing {
 public:
  Placing(const std::string& files, const Delivered& from, Placed& placed)
      : files_(files), from_(from), placed_(placed) {}

  void run() {
    auto below = files_below(from_.folder);
    for (const auto& [name, error] : below.unread) fail(name, error.message);
    for (const auto& name : below.names) place(name);
    for (const auto& folder : below.folders) ::rmdir((from_.folder + "/" + folder).c_str());
    ::rmdir(from_.folder.c_str());
    tell_renamed();
  }

 private:
  void place(const std::string& name) {
    auto from = from_.folder + "/" + name;
    redirect_link(from, from_.folder, files_);
    auto moved = move_file(from, files_, name);
    if (moved == Move::kTaken) {
      moved = move_file(from, files_, from_.label + "/" + name);
      if (moved == Move::kMoved) renamed_.push_back(name);
    }
    if (moved == Move::kMoved) ++placed_.files;
    if (moved == Move::kTaken) fail(name, name + ": there is another file of this name");
    if (moved == Move::kFailed) fail(name, system_error("cannot publish " + name, errno).message);
  }

  void fail(const std::string& /*name*/, const std::string& why) {
    if (placed_.error.empty()) placed_.error = fmt::format("{}: {}; it stays in {}", from_.who, why, from_.folder);
  }

  void tell_renamed() {
    if (renamed_.empty()) return;
    auto others = renamed_.size() - 1;
    placed_.remarks.push_back(fmt::format("{}{} of {} differ{} from what others wrote under the same name: see {}/{}",
                                          renamed_.front(), others == 0 ? "" : fmt::format(" (and {} more)", others),
                                          from_.who, others == 0 ? "s" : "", files_, from_.label));
  }

  const std::string& files_;
  const Delivered& from_;
  Placed& placed_;
  std::vector<std::string> renamed_;
};

}  // namespace

Placed place_delivered(const std::string& files, const std::vector<Delivered>& delivered) {
  Placed placed;
  for (const auto& from : delivered) Placing(files, from, placed).run();
  if (!delivered.empty()) ::rmdir(fs::path(delivered.front().folder).parent_path().c_str());
  return placed;
}

}  // namespace taas::storage
