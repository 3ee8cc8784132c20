#include "proc/spawn/null_device.hpp"

#include <fcntl.h>

#include <cerrno>

namespace taas {

Result<Fd> open_null() {
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return system_error("cannot open /dev/null", errno);
  return null;
}

}  // namespace taas
