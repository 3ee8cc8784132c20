#include "storage/delivery/folder_below.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

namespace taas::storage {
namespace {

Result<Fd> open_folder(int parent, const std::string& name, Missing missing) {
  constexpr int kNoLink = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (missing == Missing::kMake && ::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
    return system_error("cannot create the folder " + name, errno);
  }
  Fd folder(::openat(parent, name.c_str(), kNoLink));
  if (!folder) return system_error("cannot open the folder " + name, errno);
  return folder;
}

}  // namespace

bool is_name_below(const std::string& name) {
  if (name.empty() || name.size() >= PATH_MAX || name.front() == '/' || name.back() == '/') return false;
  if (name.find('\0') != std::string::npos) return false;
  const auto parts = std::filesystem::path(name);
  return std::all_of(parts.begin(), parts.end(), [](const auto& part) {
    return !part.empty() && part != "." && part != ".." && part.native().size() <= NAME_MAX;
  });
}

Result<PlaceBelow> open_place_below(const std::string& top, const std::string& name, Missing folders) {
  if (!is_name_below(name)) return unavailable_error(name + ": not a name below a folder");
  Fd folder(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return system_error("cannot open the folder " + top, errno);
  const std::filesystem::path path(name);
  for (const auto& part : path.parent_path()) {
    auto inner = open_folder(folder.get(), part.string(), folders);
    if (!inner) return std::move(inner.error()).with("cannot publish " + name);
    folder = std::move(*inner);
  }
  return PlaceBelow{std::move(folder), path.filename().string()};
}

}  // namespace taas::storage
