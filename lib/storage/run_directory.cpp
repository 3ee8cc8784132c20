#include "storage/run_directory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/beneath.hpp"

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
  auto absolute = fs::weakly_canonical(fs::absolute(path, failure), failure);
  if (failure) return unusable({path, flag}, "use", failure.value());
  auto text = absolute.string();
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
Result<std::string> make_unique(const Place& parent, const std::string& name) {
  for (int number = 1; number < kMaxSameName; ++number) {
    auto path = fmt::format("{}/{}{}", parent.path, name, number == 1 ? "" : fmt::format("-{}", number));
    if (::mkdir(path.c_str(), 0777) == 0) return path;
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

Result<> make_folder(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) return system_error("cannot create the folder " + path, failure.value());
  return {};
}

Result<std::string> make_run_folder(const std::string& where, const char* flag, const std::string& name) {
  auto place = resolve(where, flag);
  if (!place) return place.error();
  if (auto made = make_place(*place); !made) return made.error();
  if (auto space = check_space(*place); !space) return space.error();
  return make_unique(*place, name);
}

}  // namespace

Result<> RunDirectory::make_private_files() const { return make_folder(private_files()); }

std::string RunDirectory::private_output(Rank rank) const {
  return fmt::format("{}/rank-{:04}/output", private_files(), rank.value);
}

Result<std::string> RunDirectory::rank_log(Generation generation, const RankPlace& rank, LogStream stream) const {
  bool out = stream == LogStream::kStdout;
  auto path =
      fmt::format("{}/generation-{}/rank-{:04}.{}", path_, generation.value, rank.rank.value, out ? "out" : "err");
  if (!log_dir_.empty()) {
    auto node = rank.node.value == 0 ? "" : fmt::format("/node_{}", rank.node.value);
    path = fmt::format("{}{}/attempt_{}/{}/{}.log", log_dir_, node, generation.value, rank.local_rank,
                       out ? "stdout" : "stderr");
  }
  if (auto made = make_folder(fs::path(path).parent_path().string()); !made) return made.error();
  return path;
}

Result<std::string> RunDirectory::error_file(Generation generation, const RankPlace& rank) const {
  auto log = rank_log(generation, rank, LogStream::kStderr);
  if (!log) return log;
  if (!log_dir_.empty()) return (fs::path(*log).parent_path() / "error.json").string();
  return fs::path(*log).replace_extension(".error.json").string();
}

Result<std::string> RunDirectory::flight_records(Generation generation) const {
  auto path = fmt::format("{}/generation-{}/flight-record-", path_, generation.value);
  if (auto made = make_folder(fs::path(path).parent_path().string()); !made) return made.error();
  return path;
}

Result<RunDirectory> create_run_directory(RunDirectoryOptions options) {
  auto name = folder_name(options.run_id);
  auto path = make_run_folder(options.output, "--output", name);
  if (!path) return path.error();
  std::string log_dir;
  if (options.log_dir) {
    auto made = make_run_folder(*options.log_dir, "--log-dir", name);
    if (!made) return made.error();
    log_dir = *made;
  }
  RunDirectory run(*path, std::move(log_dir));
  if (auto made = run.make_folders(); !made) return made.error();
  if (options.is_latest) point_latest_to(run.path());
  return run;
}

Result<RunDirectory> open_run_directory(std::string path, std::string log_dir) {
  for (const auto& place : {Place{path, "--output"}, Place{log_dir, "--log-dir"}}) {
    if (place.path.empty()) continue;
    if (auto made = make_place(place); !made) return made.error();
    if (auto space = check_space(place); !space) return space.error();
  }
  RunDirectory run(std::move(path), std::move(log_dir));
  if (auto made = run.make_folders(); !made) return made.error();
  for (const auto& place : {Place{run.path(), "--output"}, Place{run.log_dir(), "--log-dir"}}) {
    if (!place.path.empty() && ::access(place.path.c_str(), W_OK) != 0) return unusable(place, "write to", errno);
  }
  return run;
}

Result<> RunDirectory::make_folders() {
  for (const auto& folder : {staging(), files()}) {
    if (auto made = make_folder(folder); !made) return made;
  }
  auto opened = open_folder(path_);
  if (!opened) return opened.error();
  folder_ = std::make_shared<const Fd>(std::move(*opened));
  return {};
}

}  // namespace taas::storage
