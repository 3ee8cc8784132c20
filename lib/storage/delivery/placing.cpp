#include "storage/delivery/placing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/fd.hpp"
#include "base/folders/beneath.hpp"

namespace taas::storage {
namespace {

constexpr std::size_t kCompared = 1u << 16;
constexpr int kDeepest = 256;  // of folders within each other: a stack and descriptors have an end

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

bool same_bytes(const HeldPath& a, const HeldPath& b) {
  const auto first = a.folder.open_to_read(a.name), second = b.folder.open_to_read(b.name);
  if (!first || !second) return false;
  struct stat one_status {
  }, other_status{};
  const bool known = ::fstat(first->get(), &one_status) == 0 && ::fstat(second->get(), &other_status) == 0;
  if (!known || one_status.st_size != other_status.st_size) return false;
  static thread_local std::array<char, kCompared> one, other;
  for (;;) {
    auto count = read_full(*first, one);
    if (count < 0 || count != read_full(*second, other)) return false;
    if (count == 0) return true;
    auto size = static_cast<std::size_t>(count);
    if (std::string_view(one.data(), size) != std::string_view(other.data(), size)) return false;
  }
}

bool is_same(const HeldPath& a, const HeldPath& b) {
  const auto link = a.folder.read_link(a.name), other_link = b.folder.read_link(b.name);
  if (link || other_link) return link && other_link && *link == *other_link;
  return same_bytes(a, b);
}

enum class Move { kMoved, kSame, kTaken, kFailed };

/// A link to a file that lay beside it has to lead to where that file is now.
void redirect_link(const HeldPath& link, const std::string& from, const std::string& to) {
  const auto points_to = link.folder.read_link(link.name);
  if (!points_to || points_to->rfind(from + "/", 0) != 0) return;
  const auto place = open_place_below(link.folder.descriptor(), link.name, Missing::kRefuse);
  if (!place || ::unlinkat(place->folder.get(), place->name.c_str(), 0) != 0) return;
  const auto moved = to + points_to->substr(from.size());
  if (::symlinkat(moved.c_str(), place->folder.get(), place->name.c_str()) != 0) return;
}

Move move_file(const HeldPath& from, const HeldFolder& files, const std::string& name) {
  const auto source = open_place_below(from.folder.descriptor(), from.name, Missing::kRefuse);
  if (!source) return errno = source.error().system_errno, Move::kFailed;
  auto place = open_place_below(files.descriptor(), name, Missing::kMake);
  bool in_the_way = !place && (place.error().system_errno == ENOTDIR || place.error().system_errno == ELOOP);
  if (in_the_way) return Move::kTaken;  // a file where a folder should be
  if (!place) return errno = place.error().system_errno, Move::kFailed;
  struct stat found {};
  if (::fstatat(place->folder.get(), place->name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!is_same(from, {files, name})) return Move::kTaken;
    return from.folder.remove(from.name) ? Move::kSame : Move::kFailed;
  }
  if (::renameat(source->folder.get(), source->name.c_str(), place->folder.get(), place->name.c_str()) != 0) {
    return Move::kFailed;
  }
  auto flushed = files.flush(name);
  if (!flushed) errno = flushed.error().system_errno;
  return flushed ? Move::kMoved : Move::kFailed;
}

/// One machine's files.
class Placing {
 public:
  Placing(const HeldFolder& files, const Delivered& from, Placed& placed)
      : files_(files), from_(from), placed_(placed) {}

  void run() {
    const auto folder = from_.folder.folder.folder(from_.folder.name);
    if (!folder && folder.error().system_errno == ENOENT) return;  // nothing has come
    if (!folder) return fail(folder.error().message);
    from_folder_ = *folder;
    place_below(*folder, "", 0);
    from_.folder.folder.remove_folder(from_.folder.name);
    tell_renamed();
  }

 private:
  /// `name` is the folder's, and ends with a slash unless it is the first one.
  void place_below(const HeldFolder& folder, const std::string& name, int depth) {
    const auto entries = folder.entries();
    if (!entries) return fail(entries.error().message);
    for (const auto& entry : *entries) {
      if (!entry.is_folder) place(name + entry.name);
      if (!entry.is_folder) continue;
      const auto inner = folder.folder(entry.name);
      if (!inner) fail(inner.error().message);
      if (inner && depth == kDeepest) fail(inner->path() + ": too many folders within each other");
      if (inner && depth < kDeepest) place_below(*inner, name + entry.name + "/", depth + 1);
      folder.remove_folder(entry.name);
    }
  }

  void place(const std::string& name) {
    const HeldPath from{from_folder_, name};
    redirect_link(from, from_folder_.path(), files_.path());
    auto moved = move_file(from, files_, name);
    if (moved == Move::kTaken) {
      moved = move_file(from, files_, from_.label + "/" + name);
      if (moved == Move::kMoved) renamed_.push_back(name);
    }
    if (moved == Move::kMoved) ++placed_.files;
    if (moved == Move::kTaken) fail(name + ": there is another file of this name");
    if (moved == Move::kFailed) fail(system_error("cannot publish " + name, errno).message);
  }

  void fail(const std::string& why) {
    if (placed_.error.empty()) {
      placed_.error = fmt::format("{}: {}; it stays in {}", from_.who, why, from_.folder.path());
    }
  }

  void tell_renamed() {
    if (renamed_.empty()) return;
    auto others = renamed_.size() - 1;
    placed_.remarks.push_back(fmt::format("{}{} of {} differ{} from what others wrote under the same name: see {}/{}",
                                          renamed_.front(), others == 0 ? "" : fmt::format(" (and {} more)", others),
                                          from_.who, others == 0 ? "s" : "", files_.path(), from_.label));
  }

  const HeldFolder& files_;
  const Delivered& from_;
  Placed& placed_;
  HeldFolder from_folder_;
  std::vector<std::string> renamed_;
};

}  // namespace

Placed place_delivered(const HeldPath& files, const std::vector<Delivered>& delivered) {
  Placed placed;
  const auto folder = files.folder.folder(files.name);
  if (!folder) {
    placed.error = folder.error().message;
    return placed;
  }
  for (const auto& from : delivered) Placing(*folder, from, placed).run();
  if (delivered.empty()) return placed;
  const auto& first = delivered.front().folder;
  if (const auto slash = first.name.rfind('/'); slash != first.name.npos) {
    first.folder.remove_folder(first.name.substr(0, slash));
  }
  return placed;
}

}  // namespace taas::storage
