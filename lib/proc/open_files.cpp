#include "proc/open_files.hpp"

#include <sys/resource.h>

namespace taas {

std::optional<std::uint64_t> raise_open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return std::nullopt;
  auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

}  // namespace taas
