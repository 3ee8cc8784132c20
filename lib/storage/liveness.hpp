#pragma once

namespace taas::storage {

/// Whether the process runs and is not on its way out. A dying process is told from a living one before the kernel
/// closes its files, so a file that was closed when this is still true was closed on purpose.
bool process_is_alive(int pid);

}  // namespace taas::storage
