#include "proc/machine/machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "base/files.hpp"
#include "base/text.hpp"
#include "proc/family/cgroup.hpp"

namespace taas {
namespace {

constexpr int kMaxCores = 1 << 16;

int cores_in_affinity_mask() {
  for (int size = CPU_SETSIZE; size <= kMaxCores; size *= 2) {
    auto set = std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>(CPU_ALLOC(size), [](cpu_set_t* s) { CPU_FREE(s); });
    auto bytes = CPU_ALLOC_SIZE(size);
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return 1;
}

double read_number(const std::string& path) {
  auto text = read_file(path);
  return text ? std::strtod(text->c_str(), nullptr) : 0;
}

/// Cores' worth of time that one group may use; infinite without a quota.
double quota(Cgroup::Version version, const std::string& directory) {
  double limit = 0, period = 0;
  if (version == Cgroup::Version::kOne) {
    limit = read_number(directory + "/cpu.cfs_quota_us");  // -1: none
    period = read_number(directory + "/cpu.cfs_period_us");
  } else if (auto text = read_file(directory + "/cpu.max")) {
    std::istringstream(*text) >> limit >> period;  // "max 100000": none
  }
  return limit > 0 && period > 0 ? limit / period : HUGE_VAL;
}

/// A group is held to the quotas of those above it as well.
double tightest_quota() {
  auto group = find_cgroup("cpu");
  if (!group) return HUGE_VAL;
  double tightest = HUGE_VAL;
  for (auto directory = group->directory; directory.size() >= group->mount.size();) {
    tightest = std::min(tightest, quota(group->version, directory));
    directory.resize(directory.rfind('/'));
  }
  return tightest;
}

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

/// Device files that this process may open; a batch system withholds those of other jobs.
int usable_device_files() {
  int count = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/dev", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    auto name = entry->path().filename().string();
    if (!name.starts_with("nvidia") || !is_number(std::string_view(name).substr(6))) continue;
    if (::access(entry->path().c_str(), R_OK | W_OK) == 0) ++count;
  }
  return count;
}

/// The driver makes the device files when the first CUDA program runs: until then it lists its GPUs only here.
int gpus_of_driver() {
  std::error_code none;
  std::filesystem::directory_iterator entry("/proc/driver/nvidia/gpus", none), end;
  return none ? 0 : static_cast<int>(std::distance(entry, end));
}

bool is_valid_device(std::string_view entry, int installed) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  int index = 0;
  auto [rest, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return problem == std::errc() && rest == entry.data() + entry.size() && index >= 0 && index < installed;
}

}  // namespace

int usable_cores() {
  int cores = cores_in_affinity_mask();
  double limit = std::ceil(tightest_quota());
  return limit < cores ? std::max(1, static_cast<int>(limit)) : cores;
}

int count_visible_gpus(std::optional<std::string_view> visible_devices, int installed) {
  if (!visible_devices || installed == 0) return installed;
  int count = 0;
  for (auto entry : split(*visible_devices, ',')) {
    if (!is_valid_device(trim(entry, " "), installed)) return count;
    ++count;
  }
  return count;
}

int visible_gpus() {
  int installed = usable_device_files();
  if (installed == 0) installed = gpus_of_driver();
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return count_visible_gpus(value == nullptr ? std::nullopt : std::optional<std::string_view>(value), installed);
}

std::string hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace taas
