#include "ui/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/files.hpp"

namespace taas::ui {
namespace {

// A pipe that poll() calls writable takes this much without blocking (POSIX: PIPE_BUF).
constexpr std::size_t kChunk = 4096;

/// The same pipe or terminal under an open file description of our own, where O_NONBLOCK disturbs nobody. Not
/// everything can be opened again (sockets, a terminal of another user): then the descriptor itself, and poll() before
/// each write.
Fd own_description(Fd descriptor) {
  auto path = "/proc/self/fd/" + std::to_string(descriptor.get());
  Fd reopened(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return reopened ? std::move(reopened) : std::move(descriptor);
}

/// Regular files and such cannot be waited for: they are always ready.
Fd make_readiness(const Fd& descriptor) {
  Fd readiness(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  if (::epoll_ctl(readiness.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) return {};
  return readiness;
}

bool wait_writable(const Fd& descriptor, int milliseconds) {
  pollfd request{descriptor.get(), POLLOUT, 0};
  return ::poll(&request, 1, milliseconds) > 0;
}

/// What a disk thread writes to a file, one piece at a time.
class FileWriting {
 public:
  explicit FileWriting(Fd file) : file_(std::move(file)) {}

  /// On the disk thread.
  void write(const std::string& text) {
    auto written = write_all(file_, text);
    std::lock_guard lock(mutex_);
    left_ -= text.size();
    if (!written && failure_ == 0) failure_ = written.error().system_errno;
  }
  void expect(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    left_ += bytes;
  }
  [[nodiscard]] std::size_t left() const {
    std::lock_guard lock(mutex_);
    return left_;
  }
  [[nodiscard]] int failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  Fd file_;
  mutable std::mutex mutex_;
  std::size_t left_ = 0;
  int failure_ = 0;
};

}  // namespace

struct Console::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, Fd given, Options chosen) : options(std::move(chosen)), waiter(io) {
    is_terminal = ::isatty(given.get()) == 1;
    if (auto readiness = make_readiness(given)) {
      descriptor = own_description(std::move(given));
      // Asio makes what it waits for non-blocking: so it waits for an epoll descriptor of ours, not for the shared one.
      waiter.assign(make_readiness(descriptor).release());
    } else if (options.disk != nullptr) {
      file = std::make_shared<FileWriting>(std::move(given));
    } else {
      descriptor = std::move(given);
    }
  }

  [[nodiscard]] bool can_wait() const { return waiter.is_open(); }
  [[nodiscard]] std::size_t pending() const { return buffer.size() - sent + (file ? file->left() : 0); }

  /// One piece at a time: what comes meanwhile is the next one.
  void write_to_file() {
    if (waiting || buffer.empty()) return;
    waiting = true;
    hand_over([weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      self->waiting = false;
      self->look_for_failure();
      self->write_to_file();
      self->tell_crowding();
    });
  }

  void hand_over(std::function<void()> then) {
    file->expect(buffer.size());
    options.disk->run([to = file, text = std::exchange(buffer, {})] { to->write(text); }, std::move(then));
  }

  void look_for_failure() {
    if (!broken && file->failure() != 0) give_up(file->failure());
    if (broken) buffer.clear();
  }

  std::size_t finish_file(Instant deadline) {
    if (!buffer.empty()) hand_over(nullptr);
    options.disk->finish(std::max<Duration>(deadline - steady_now(), Duration::zero()));
    look_for_failure();
    return pending();
  }

  void write_some() {
    while (!broken && pending() > 0 && wait_writable(descriptor, 0)) {
      auto count = ::write(descriptor.get(), buffer.data() + sent, std::min(kChunk, pending()));
      if (count >= 0) {
        sent += static_cast<std::size_t>(count);
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        give_up(errno);
      }
    }
    if (broken) sent = buffer.size();
    if (sent == buffer.size() || sent > options.high) {
      buffer.erase(0, sent);
      sent = 0;
    }
  }

  /// A terminal that was closed says EIO.
  void give_up(int system_errno) {
    broken = true;
    bool went_away = system_errno == EPIPE || system_errno == ECONNRESET || (system_errno == EIO && is_terminal);
    if (!went_away) lost = system_error("cannot write", system_errno);
  }

  void write_when_ready() {
    if (waiting || pending() == 0) return;
    waiting = true;
    waiter.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const boost::system::error_code& error) {
                        auto self = weak.lock();
                        if (error || !self) return;
                        self->waiting = false;
                        self->write_some();
                        self->write_when_ready();
                        self->tell_crowding();
                      });
  }

  void tell_crowding() {
    bool now = crowded ? pending() > options.low : pending() > options.high;
    if (now == crowded) return;
    crowded = now;
    if (options.on_crowded) options.on_crowded(now);
  }

  Options options;
  std::shared_ptr<FileWriting> file;  // instead of the descriptor
  Fd descriptor;
  boost::asio::posix::stream_descriptor waiter;  // closed: the descriptor never makes anyone wait
  std::string buffer;
  std::size_t sent = 0;  // of buffer
  bool waiting = false;
  bool crowded = false;
  bool broken = false;
  bool is_terminal = false;
  Result<> lost;
};

Fd duplicate(Stream stream) {
  return Fd(::fcntl(stream == Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
}

Console::Console(boost::asio::io_context& io, Fd descriptor) : Console(io, std::move(descriptor), Options{}) {}

Console::Console(boost::asio::io_context& io, Fd descriptor, Options options)
    : state_(std::make_shared<State>(io, std::move(descriptor), std::move(options))) {}

Console::~Console() = default;

void Console::write(std::string_view text) {
  if (state_->broken) return;
  if (state_->file) {
    state_->buffer += text;
    state_->write_to_file();
    return state_->tell_crowding();
  }
  if (!state_->can_wait()) {
    if (auto written = write_all(state_->descriptor, text); !written) state_->give_up(written.error().system_errno);
    return;
  }
  state_->buffer += text;
  if (!state_->waiting) state_->write_some();
  state_->write_when_ready();
  state_->tell_crowding();
}

std::size_t Console::pending() const { return state_->pending(); }

std::size_t Console::finish(Instant deadline) {
  if (state_->file) return state_->finish_file(deadline);
  for (;;) {
    state_->write_some();
    if (pending() == 0) return 0;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
    if (left > 0) wait_writable(state_->descriptor, static_cast<int>(std::min<long>(left, 60000)));
    if (steady_now() >= deadline) return pending();
  }
}

Result<> Console::lost() const { return state_->lost; }

}  // namespace taas::ui
