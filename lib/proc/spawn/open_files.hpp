#pragma once

#include <cstdint>
#include <optional>

#include "base/error.hpp"

namespace taas {

/// Raises this process's soft limit of open files to the hard one: the launcher holds several per rank, and the usual
/// 1024 is soon reached. Returns the former limit when it changed, to be restored in ranks (programs that use select(),
/// or close every possible descriptor, rely on a low one).
std::optional<std::uint64_t> raise_open_files_limit();

/// Makes room for the descriptors of a launcher with some hundred ranks, as far as the soft limit allows. Call it while
/// the process has one thread: where several share the table, the kernel waits about 10 ms each time that it grows.
void reserve_open_files();

/// How many of this process's descriptors clients may have that have proved no secret. The rest of the soft limit is
/// left: a quarter of it, or what a launcher or agent with so many ranks, or a coordinator with so many agents, needs
/// if that is more. At least one for each of them.
int open_files_for_clients(int ranks);

/// Whether the hard limit leaves room for a launcher or agent with so many ranks on this machine, before the first
/// descriptor is short somewhere in the middle of a start.
Result<> check_open_files_limit(int ranks);

}  // namespace taas
