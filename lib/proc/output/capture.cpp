#include "proc/output/capture.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <optional>

#include "proc/output/log_writer.hpp"

namespace taas {
namespace {

/// One for all captures of a thread: it is only in use between a read and the end of the callback.
thread_local std::array<char, 64 * 1024> buffer;

}  // namespace

struct Capture::State : std::enable_shared_from_this<Capture::State> {
  State(boost::asio::io_context& io, Fd end, CaptureCallbacks calls)
      : pipe(io, end.release()), callbacks(std::move(calls)) {}

  void open(CaptureLog place) {
    if (place.file.empty()) return;
    LogWriterCallbacks calls;
    calls.on_error = [weak = weak_from_this()](const Error& error) {
      auto self = weak.lock();
      if (self && !self->closed && self->callbacks.on_log_error) self->callbacks.on_log_error(error);
    };
    calls.on_room = [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->wait();
    };
    log.emplace(*place.disk, std::move(place.file), std::move(calls));
  }

  [[nodiscard]] bool held_up() const { return paused || closed || ended || (log && log->crowded()); }

  void wait() {
    if (waiting || held_up()) return;
    waiting = true;
    pipe.async_wait(pipe.wait_read, [self = shared_from_this()](boost::system::error_code) {
      self->waiting = false;
      if (!self->held_up()) self->read(buffer.size());
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
    if (log) log->append(bytes);
    if (!closed && callbacks.on_bytes) callbacks.on_bytes(bytes, steady_now());
  }

  void end() {
    ended = true;
    close();
    if (!log) return tell_end();
    log->close([self = shared_from_this()] { self->tell_end(); });
  }

  void tell_end() {
    if (!closed && callbacks.on_end) callbacks.on_end();
  }

  void close() {
    boost::system::error_code ignored;
    pipe.close(ignored);
  }

  boost::asio::posix::stream_descriptor pipe;
  std::optional<LogWriter> log;
  CaptureCallbacks callbacks;
  bool waiting = false;
  bool paused = false;
  bool ended = false;
  bool closed = false;  ///< the Capture is gone
};

Capture::Capture(boost::asio::io_context& io, Fd pipe, CaptureLog log, CaptureCallbacks callbacks)
    : state_(std::make_shared<State>(io, std::move(pipe), std::move(callbacks))) {
  state_->pipe.non_blocking(true);
  state_->open(std::move(log));
  state_->wait();
}

Capture::~Capture() {
  if (!state_) return;
  state_->closed = true;
  state_->close();
  state_->log.reset();  // a wait that was broken off keeps the rest until the loop turns
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
  auto left = std::max(static_cast<std::size_t>(available), buffer.size());  // a terminal does not know all at once
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
