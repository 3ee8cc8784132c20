#include "proc/capture.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

#include "base/files.hpp"

namespace taas {
namespace {

/// One for all captures of a thread: it is only in use between a read and the end of the callback.
thread_local std::array<char, 64 * 1024> buffer;

}  // namespace

struct Capture::State : std::enable_shared_from_this<Capture::State> {
  State(boost::asio::io_context& io, Fd end, std::string path, CaptureCallbacks calls)
      : pipe(io, end.release()), log_path(std::move(path)), callbacks(std::move(calls)) {}

  void open_log() {
    if (log_path.empty()) return;
    log = Fd(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (log) return;
    boost::asio::post(pipe.get_executor(), [self = shared_from_this(), number = errno] {
      if (!self->closed) self->give_up_log(system_error("cannot open", number));
    });
  }

  void wait() {
    if (waiting || paused || closed || ended) return;
    waiting = true;
    pipe.async_wait(pipe.wait_read, [self = shared_from_this()](boost::system::error_code) {
      self->waiting = false;
      if (!self->paused && !self->closed && !self->ended) self->read(buffer.size());
      self->wait();
    });
  }

  /// Reads at most once, so that one talkative rank does not keep the others waiting. False: nothing more for now.
  bool read(std::size_t limit) {
    auto count = ::read(pipe.native_handle(), buffer.data(), std::min(limit, buffer.size()));
    if (count < 0 && errno == EINTR) return true;
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) {
      end();
      return false;
    }
    pass_on({buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }

  void pass_on(std::string_view bytes) {
    if (log) {
      auto written = write_all(log, bytes);
      if (!written) give_up_log(written.error());
    }
    if (!closed && callbacks.on_bytes) callbacks.on_bytes(bytes, steady_now());
  }

  void give_up_log(Error error) {
    log.reset();
    if (callbacks.on_log_error) callbacks.on_log_error(std::move(error).with("log file " + log_path));
  }

  void end() {
    ended = true;
    close();
    log.reset();
    if (callbacks.on_end) callbacks.on_end();
  }

  void close() {
    boost::system::error_code ignored;
    pipe.close(ignored);
  }

  boost::asio::posix::stream_descriptor pipe;
  std::string log_path;
  CaptureCallbacks callbacks;
  Fd log;
  bool waiting = false;
  bool paused = false;
  bool ended = false;
  bool closed = false;  ///< the Capture is gone
};

Capture::Capture(boost::asio::io_context& io, Fd pipe, std::string log_path, CaptureCallbacks callbacks)
    : state_(std::make_shared<State>(io, std::move(pipe), std::move(log_path), std::move(callbacks))) {
  state_->pipe.non_blocking(true);
  state_->open_log();
  state_->wait();
}

Capture::~Capture() {
  if (!state_) return;
  state_->closed = true;
  state_->close();
}

Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void Capture::drain_now() {
  auto state = state_;  // a callback may destroy this
  int available = 0;
  if (state->ended || ::ioctl(state->pipe.native_handle(), FIONREAD, &available) != 0) return;
  auto left = static_cast<std::size_t>(available);
  while (left > 0 && !state->closed && !state->ended) {
    auto step = std::min(left, buffer.size());
    if (!state->read(step)) return;
    left -= step;
  }
}

void Capture::pause() { state_->paused = true; }

void Capture::resume() {
  state_->paused = false;
  state_->wait();
}

bool Capture::ended() const { return state_->ended; }

}  // namespace taas
