#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// A descriptor that becomes readable when this child, which is not reaped yet, has ended: a pidfd, or where the kernel
/// or a sandbox (gVisor, old seccomp profiles) has none, a pipe whose other end a thread closes that waits for it.
Result<Fd> watch_child(int pid);

}  // namespace taas
