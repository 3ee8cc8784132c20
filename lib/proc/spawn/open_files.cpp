#include "proc/spawn/open_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

// Measured with programs that use no store: the least is 28 and 5 for each rank (two pipes, two log files, a pidfd).
// Copies of files and questions to the kernel take some more for a while.
constexpr std::uint64_t kOwn = 48;
constexpr std::uint64_t kPerRank = 5;
constexpr std::uint64_t kClientsPerRank = 3;  // of the store, at least

constexpr rlim_t kMostOfClients = 128 * 1024;  // more than ranks open, ten and more each, in the largest runs

constexpr rlim_t kReservedDescriptors = 1024;  // 8 KiB of the kernel's memory

}  // namespace

std::optional<std::uint64_t> raise_open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return std::nullopt;
  auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

void reserve_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == 0) return;
  auto last = static_cast<int>(std::min(limit.rlim_cur, kReservedDescriptors) - 1);
  Fd highest(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, last));  // closed at once: the table does not shrink
}

int open_files_for_clients(int ranks) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
  const auto own = std::max<rlim_t>(limit.rlim_cur / 4, kOwn + kPerRank * static_cast<rlim_t>(ranks));
  const auto left = limit.rlim_cur - std::min(limit.rlim_cur, own);
  return static_cast<int>(std::clamp(left, static_cast<rlim_t>(std::max(1, ranks)), kMostOfClients));
}

Result<> check_open_files_limit(int ranks) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return {};
  auto needed = kOwn + (kPerRank + kClientsPerRank) * static_cast<std::uint64_t>(ranks);
  if (limit.rlim_max >= needed) return {};
  return usage_error(fmt::format(
      "the limit of open files is {} (ulimit -Hn), and taas-run with {} needs {}: raise it where this shell, job or "
      "container was started",
      limit.rlim_max, plural(ranks, "rank"), needed));
}

}  // namespace taas
