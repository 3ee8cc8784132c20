#include "node/process/step_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "base/fd.hpp"
#include "node/process/runtime_folder.hpp"

namespace taas::node {
namespace {

constexpr const char* kStepsPrefix = "steps-";
constexpr int kRandomBytesOfName = 6;

}  // namespace

StepFiles::StepFiles(const Environment& environment) {
  auto found = find_runtime_folder({});
  if (!found) found = find_runtime_folder(environment);
  if (!found) return;
  folder_ = std::move(*found);
  prefix_ = kStepsPrefix + random_hex(kRandomBytesOfName);
}

StepFiles::~StepFiles() {
  for (const auto& path : given_) ::unlink(path.c_str());
}

std::string StepFiles::path(Generation generation, Rank rank) {
  if (folder_.empty()) return {};
  return *given_.insert(fmt::format("{}/{}-{}-{}", folder_, prefix_, generation.value, rank.value)).first;
}

StepCount read_steps(const std::string& path) {
  StepCount count;
  char bytes[sizeof count];
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  const bool usable = file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (!usable || ::pread(file.get(), bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return count;
  std::memcpy(&count, bytes, sizeof count);
  const bool sound = std::isfinite(count.rate) && count.rate >= 0 && count.last_ns >= 0;
  return sound ? count : StepCount();
}

}  // namespace taas::node
