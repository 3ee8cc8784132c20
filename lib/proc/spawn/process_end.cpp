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
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {

namespace {

constexpr auto kLook = std::chrono::milliseconds(250);

/// Its start, in the kernel's ticks, which tells it from a later process of the same number; empty: it is over.
std::string start_of(int pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return {};
  const auto fields = split(text->substr(text->rfind(')') + 1), ' ');
  constexpr std::size_t kState = 1, kStart = 20;
  const bool over = fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X";
  return over ? std::string() : std::string(fields[kStart]);
}

/// Where the kernel has no handle of a process that is no child.
struct Looking : std::enable_shared_from_this<Looking> {
  Looking(boost::asio::io_context& io, int number, std::function<void()> then)
      : pid(number), start(start_of(number)), callback(std::move(then)), timer(io) {}

  void look() {
    if (start_of(pid) != start) return callback();
    timer.expires_after(kLook);
    timer.async_wait([self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped) self->look();
    });
  }

  int pid;
  std::string start;
  std::function<void()> callback;
  boost::asio::steady_timer timer;
};

}  // namespace

Result<> on_process_end(boost::asio::io_context& io, int pid, std::function<void()> callback) {
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int why = errno;
  const bool no_handles = !handle && (why == ENOSYS || why == EPERM);
  if (no_handles ? start_of(pid).empty() : !handle && why == ESRCH) {
    return usage_error(fmt::format("{}: there is no such process", pid));
  }
  if (no_handles) return std::make_shared<Looking>(io, pid, std::move(callback))->look(), Result<>();
  if (!handle) return system_error(fmt::format("cannot watch process {}", pid), why);
  auto watch = std::make_shared<boost::asio::posix::stream_descriptor>(io, handle.release());
  watch->async_wait(watch->wait_read, [watch, callback = std::move(callback)](boost::system::error_code stopped) {
    if (!stopped) callback();
  });
  return {};
}

}  // namespace taas
