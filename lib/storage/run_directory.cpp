#include "storage/run_directory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLeastSpace = 1u << 20;  // less than this is no place to begin a training
constexpr int kMaxSameName = 10000;

/// A place that was asked for with `flag`.
struct Place {
  std::string path;
  const char* flag;
};

Error unusable(const Place& place, std::string_view what, int system_errno) {
  auto error = system_error(fmt::format("cannot {} {}", what, place.path), system_errno);
  error.message += fmt::format("; choose another folder with {} DIR", place.flag);
  return error;
}

Result<Place> resolve(const std::string& path, const char* flag) {
  std::error_code failure;
  const auto absolute = fs::absolute(path, failure);
  if (failure) return unusable({path, flag}, "use", failure.value());
  auto canonical = fs::weakly_canonical(absolute, failure);
  const bool denied = failure.value() == ENOSYS || failure.value() == EPERM;  // faccessat2(), in a sandbox
  if (failure && !denied) return unusable({path, flag}, "use", failure.value());
  auto text = (denied ? absolute.lexically_normal() : canonical).string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return Place{text, flag};
}

Result<> make_place(const Place& place) {
  std::error_code failure;
  fs::create_directories(place.path, failure);
  struct stat found {};
  if (failure && ::stat(place.path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode)) {
    return unusable(place, "use", ENOTDIR);
  }
  if (failure) return unusable(place, "create the folder", failure.value());
  return {};
}

Result<> check_space(const Place& place) {
  struct statvfs disk {};
  if (::statvfs(place.path.c_str(), &disk) != 0) return unusable(place, "read the free space of", errno);
  bool no_inodes = disk.f_files > 0 && disk.f_favail == 0;  // some file systems do not count them
  if (disk.f_blocks == 0) return {};                        // mounts of object stores do not say
  if (std::uintmax_t{disk.f_bavail} * disk.f_frsize >= kLeastSpace && !no_inodes) return {};
  return unusable(place, "write to", ENOSPC);
}

/// A run id that comes from the user is one folder's name, whatever is in it.
std::string folder_name(std::string run_id) {
  for (auto& byte : run_id) {
    if (byte == '/' || byte == '\0') byte = '_';
  }
  if (run_id.empty() || run_id.front() == '.') run_id = fmt::format("_{}", run_id);
  return run_id == "latest" ? "latest-1" : run_id;
}

/// Makes a folder that nobody else has: the name, or the name with a number.
Result<HeldFolder> make_unique(const Place& parent, const std::string& name) {
  const auto held = HeldFolder::open(parent.path);
  if (!held) return unusable(parent, "open", held.error().system_errno);
  for (int number = 1; number < kMaxSameName; ++number) {
    const auto own = fmt::format("{}{}", name, number == 1 ? "" : fmt::format("-{}", number));
    if (::mkdirat(held->descriptor().get(), own.c_str(), 0777) == 0) return held->folder(own);
    if (errno != EEXIST) return unusable(parent, fmt::format("create {} in", name), errno);
  }
  return unusable(parent, fmt::format("create {} in", name), EEXIST);
}

/// The link is made under another name and moved over, so that there is one at every moment. It is a convenience: where
/// links cannot be made, the run goes on.
void point_latest_to(const std::string& run) {
  fs::path path(run);
  auto temporary = path.parent_path() / fmt::format(".latest-{}", random_hex(4));
  std::error_code failure;
  fs::create_symlink(path.filename(), temporary, failure);
  if (failure) return;
  fs::rename(temporary, path.parent_path() / "latest", failure);
  if (failure) fs::remove(temporary, failure);
}

Result<HeldFolder> make_run_folder(const std::string& where, const char* flag, const std::string& name) {
  auto place = resolve(where, flag);
  if (!place) return place.error();
  if (auto made = make_place(*place); !made) return made.error();
  if (auto space = check_space(*place); !space) return space.error();
  return make_unique(*place, name);
}

/// Not where the disk is full, or something else has the name.
bool nobody_may_write(const Error& error) {
  const int why = error.system_errno;
  return why == EACCES || why == EPERM || why == EROFS || why == ENOENT;
}

std::string generation_folder(Generation generation) { return fmt::format("generation-{}", generation.value); }

std::string private_output_of(Rank rank) { return fmt::format("private/rank-{:04}/output", rank.value); }

/// Of another node, where it may be there already.
Result<HeldFolder> open_run_folder(const Place& place) {
  if (place.path.empty()) return HeldFolder();
  if (auto made = make_place(place); !made) return made.error();
  if (auto space = check_space(place); !space) return space.error();
  auto held = HeldFolder::open(place.path);
  if (held) return held;
  auto error = held.error();
  error.message += fmt::format("; choose another folder with {} DIR", place.flag);
  return error;
}

}  // namespace

Result<> RunDirectory::make_private_files() const {
  auto made = folder_.make_folder("private");
  return made ? Result<>() : made.error();
}

std::string RunDirectory::private_output(Rank rank) const { return path() + "/" + private_output_of(rank); }

Result<> RunDirectory::make_private_output(Rank rank) const {
  auto made = folder_.make_folder(private_output_of(rank));
  return made ? Result<>() : made.error();
}

Result<HeldPath> RunDirectory::place_of_rank(Generation generation, const RankPlace& rank, const char* below_run,
                                             const char* below_log_dir) const {
  auto inner = generation_folder(generation);
  if (logs_) {
    const auto node = rank.node.value == 0 ? "" : fmt::format("node_{}/", rank.node.value);
    inner = fmt::format("{}attempt_{}/{}", node, generation.value, rank.local_rank);
  }
  const auto& top = logs_ ? logs_ : folder_;
  if (auto made = top.make_folder(inner); !made) return made.error();
  const auto name = logs_ ? below_log_dir : fmt::format("rank-{:04}.{}", rank.rank.value, below_run);
  return HeldPath{top, fmt::format("{}/{}", inner, name)};
}

Result<HeldPath> RunDirectory::rank_log(Generation generation, const RankPlace& rank, LogStream stream) const {
  const bool out = stream == LogStream::kStdout;
  return place_of_rank(generation, rank, out ? "out" : "err", out ? "stdout.log" : "stderr.log");
}

Result<HeldPath> RunDirectory::error_file(Generation generation, const RankPlace& rank) const {
  return place_of_rank(generation, rank, "error.json", "error.json");
}

void RunDirectory::remove_rank_files(Generation generation, const RankPlace& rank) const {
  const auto inner = generation_folder(generation);
  for (const auto* kind : {"out", "err", "error.json"}) {
    folder_.remove(fmt::format("{}/rank-{:04}.{}", inner, rank.rank.value, kind));
  }
  folder_.remove_folder(inner);
}

Result<HeldPath> RunDirectory::flight_records(Generation generation) const {
  const auto inner = generation_folder(generation);
  if (auto made = folder_.make_folder(inner); !made) return made.error();
  return HeldPath{folder_, inner + "/flight-record-"};
}

Result<RunDirectory> create_run_directory(RunDirectoryOptions options) {
  auto name = folder_name(options.run_id);
  auto folder = make_run_folder(options.output, "--output", name);
  std::string notice;
  if (!folder && options.otherwise && nobody_may_write(folder.error())) {
    auto other = make_run_folder(options.otherwise(), "--output", name);
    if (!other) return folder.error();
    notice =
        fmt::format("{} cannot be written ({}): what this run writes is in {}; --output DIR chooses another folder",
                    options.output, std::strerror(folder.error().system_errno), other->path());
    folder = std::move(other);
  }
  if (!folder) return folder.error();
  auto logs = options.log_dir ? make_run_folder(*options.log_dir, "--log-dir", name) : Result<HeldFolder>(HeldFolder());
  if (!logs) return logs.error();
  RunDirectory run(std::move(*folder), std::move(*logs));
  if (auto made = run.make_folders(); !made) return made.error();
  run.notice_ = std::move(notice);
  if (options.is_latest) point_latest_to(run.path());
  return run;
}

Result<RunDirectory> open_run_directory(const std::string& path, const std::string& log_dir) {
  const Place place{path, "--output"}, log_place{log_dir, "--log-dir"};
  auto folder = open_run_folder(place);
  if (!folder) return folder.error();
  auto logs = open_run_folder(log_place);
  if (!logs) return logs.error();
  RunDirectory run(std::move(*folder), std::move(*logs));
  if (auto made = run.make_folders(); !made) return made.error();
  for (const auto& used : {place, log_place}) {
    if (!used.path.empty() && ::access(used.path.c_str(), W_OK) != 0) return unusable(used, "write to", errno);
  }
  return run;
}

Result<> RunDirectory::make_folders() const {
  for (const auto* name : {".staging", "output"}) {
    if (auto made = folder_.make_folder(name); !made) return made.error();
  }
  return {};
}

}  // namespace taas::storage
