#include "data/transport/wakeup.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>

namespace taas::data {

namespace {

constexpr short kFailed = POLLERR | POLLHUP | POLLNVAL;

short events_of(Ready what) {
  if (what == Ready::kRead) return POLLIN;
  return what == Ready::kWrite ? POLLOUT : static_cast<short>(POLLIN | POLLOUT);
}

}  // namespace

timespec to_timespec(Duration patience) {
  const auto nanoseconds = std::max<Duration::rep>(patience.count(), 0);
  return {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);  // full: it is awake anyway
}

void Wakeup::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_.get(), &count, sizeof count);
}

bool wait_until_ready(const Fd& fd, Ready what, const Wakeup& wakeup, Duration patience) {
  std::array<pollfd, 2> fds{pollfd{.fd = fd.get(), .events = events_of(what), .revents = 0},
                            pollfd{.fd = wakeup.fd().get(), .events = POLLIN, .revents = 0}};
  const auto timeout = to_timespec(patience);
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return false;
  return (fds[0].revents & (fds[0].events | kFailed)) != 0;
}

bool wait_for_wake(const Wakeup& wakeup, Duration patience) {
  pollfd fd{.fd = wakeup.fd().get(), .events = POLLIN, .revents = 0};
  const auto timeout = to_timespec(patience);
  return ::ppoll(&fd, 1, &timeout, nullptr) > 0;
}

}  // namespace taas::data
