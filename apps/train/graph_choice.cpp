#include "graph_choice.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

namespace taas::train {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first word of its first line that is numbers with dots.
std::string driver_version() {
  std::istringstream line(text_of("/proc/driver/nvidia/version"));
  for (std::string word; line >> word;) {
    if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) return word;
  }
  return {};
}

/// Of the library that torch has loaded.
std::string nccl_version() {
  auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != 0) return {};
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, '\t');) fields.push_back(field);
  return fields;
}

}  // namespace

GpuVersions present_versions(std::string torch) { return {driver_version(), std::move(torch), nccl_version()}; }

std::string check_record() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return text_of(std::string(cache) + "/taas/check-gpu");
  return home == nullptr ? std::string() : text_of(std::string(home) + "/.cache/taas/check-gpu");
}

bool was_all_green(std::string_view record, const GpuVersions& versions) {
  constexpr std::size_t kDriver = 2, kTorch = 3, kNccl = 4;
  std::istringstream lines{std::string(record)};
  for (std::string line; std::getline(lines, line);) {
    const auto fields = fields_of(line);
    if (fields.size() <= kNccl || fields.front() != "all" || versions.driver.empty()) continue;
    const auto torch = fields[kTorch].substr(0, fields[kTorch].find('+'));
    if (fields[kDriver] == versions.driver && torch == versions.torch && fields[kNccl] == versions.nccl) return true;
  }
  return false;
}

}  // namespace taas::train
