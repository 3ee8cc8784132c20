#include "proc/spawn/process_end.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <memory>

#include "base/fd.hpp"

namespace taas {

Result<> on_process_end(boost::asio::io_context& io, int pid, std::function<void()> callback) {
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle && errno == ESRCH) return usage_error(fmt::format("{}: there is no such process", pid));
  if (!handle) return system_error(fmt::format("cannot watch process {}", pid), errno);
  auto watch = std::make_shared<boost::asio::posix::stream_descriptor>(io, handle.release());
  watch->async_wait(watch->wait_read, [watch, callback = std::move(callback)](boost::system::error_code stopped) {
    if (!stopped) callback();
  });
  return {};
}

}  // namespace taas
