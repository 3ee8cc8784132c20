#include "proc/spawn/process_end.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/fd.hpp"
#include "proc/family/descendants.hpp"

namespace taas {

namespace {

constexpr auto kLook = std::chrono::milliseconds(250);

/// Nothing when it is over, though its parent may not have asked for its status yet.
std::optional<Process> read_living(int pid) {
  auto process = read_process(pid);
  const bool over = process && (process->state == 'Z' || process->state == 'X');
  return over ? std::nullopt : process;
}

/// Where the kernel has no handle of a process that is no child.
struct Looking : std::enable_shared_from_this<Looking> {
  Looking(boost::asio::io_context& io, Process wanted, std::function<void()> then)
      : process(wanted), callback(std::move(then)), timer(io) {}

  void look() {
    if (read_living(process.pid) != process) return callback();
    timer.expires_after(kLook);
    timer.async_wait([self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped) self->look();
    });
  }

  Process process;
  std::function<void()> callback;
  boost::asio::steady_timer timer;
};

}  // namespace

Result<> on_process_end(boost::asio::io_context& io, int pid, std::function<void()> callback) {
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int why = errno;
  const bool no_handles = !handle && (why == ENOSYS || why == EPERM);
  const auto process = no_handles ? read_living(pid) : std::nullopt;
  if (no_handles ? !process : !handle && why == ESRCH) {
    return usage_error(fmt::format("{}: there is no such process", pid));
  }
  if (process) return std::make_shared<Looking>(io, *process, std::move(callback))->look(), Result<>();
  if (!handle) return system_error(fmt::format("cannot watch process {}", pid), why);
  auto watch = std::make_shared<boost::asio::posix::stream_descriptor>(io, handle.release());
  watch->async_wait(watch->wait_read, [watch, callback = std::move(callback)](boost::system::error_code stopped) {
    if (!stopped) callback();
  });
  return {};
}

}  // namespace taas
