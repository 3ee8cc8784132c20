#include "proc/machine/machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "base/files.hpp"
#include "proc/family/cgroup.hpp"

namespace taas {
namespace {

constexpr int kMostProcessors = 1 << 16;

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

}  // namespace

Processors usable_processors() {
  Processors usable;
  for (int size = CPU_SETSIZE; size <= kMostProcessors; size *= 2) {  // the kernel's own mask may be larger
    auto set = std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>(CPU_ALLOC(size), [](cpu_set_t* s) { CPU_FREE(s); });
    auto bytes = CPU_ALLOC_SIZE(size);
    if (::sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (int processor = 0; processor < size; ++processor) {
      if (CPU_ISSET_S(static_cast<std::size_t>(processor), bytes, set.get())) usable.push_back(processor);
    }
    break;
  }
  return usable;
}

int usable_cores() {
  int cores = std::max(1, static_cast<int>(usable_processors().size()));
  double limit = std::ceil(tightest_quota());
  return limit < cores ? std::max(1, static_cast<int>(limit)) : cores;
}

std::string hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace taas
