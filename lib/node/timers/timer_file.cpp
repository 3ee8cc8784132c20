#include "node/timers/timer_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/fd.hpp"
#include "base/timer.hpp"

namespace taas::node {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr std::size_t kLongestLine = 8192;  // a client writes no more than PIPE_BUF, which is 4096
constexpr int kReadsAtOnce = 16;            // before the loop turns to others
constexpr double kLongestSleep = 10;        // s: the wall clock, by which timers are set, may be put forward

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_gone(int pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

Result<Fd> make_pipe_at(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISFIFO(found.st_mode)) {
      return usage_error(
          fmt::format("TORCHELASTIC_TIMER_FILE={}: there is something that is not a named pipe; name a "
                      "path that is free, or none",
                      path));
    }
    ::unlink(path.c_str());
  }
  if (::mkfifo(path.c_str(), kOwnerOnly) != 0) return system_error("cannot make the named pipe " + path, errno);
  Fd pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));  // its own writer: it never is at its end
  if (!pipe) return system_error("cannot open the named pipe " + path, errno);
  return pipe;
}

}  // namespace

struct TimerFile::State : std::enable_shared_from_this<TimerFile::State> {
  State(boost::asio::io_context& io, std::string where, Fd fd, Callbacks calls)
      : path(std::move(where)), pipe(io, fd.release()), callbacks(std::move(calls)), timer(io, [this] { expire(); }) {}

  void wait() {
    pipe.async_wait(pipe.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (stopped || self->closed) return;
      for (int i = 0; i < kReadsAtOnce && self->read(); ++i) continue;
      self->set_timer();
      self->wait();
    });
  }

  bool read() {
    auto size = ::read(pipe.native_handle(), buffer.data(), buffer.size());
    if (size <= 0) return false;
    take({buffer.data(), static_cast<std::size_t>(size)});
    return true;
  }

  void take(std::string_view text) {
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      append(text.substr(0, end));
      finish_line();
      text.remove_prefix(end + 1);
    }
    append(text);
  }

  void append(std::string_view text) { line.append(text.substr(0, kLongestLine + 1 - line.size())); }

  void finish_line() {
    auto request = line.size() > kLongestLine ? std::nullopt : run::parse_file_timer(line);
    line.clear();
    if (!request && !std::exchange(warned_of_line, true)) {
      callbacks.on_warning("a line in TORCHELASTIC_TIMER_FILE is not the request of a timer: such lines are ignored");
    }
    if (request) set(std::move(*request));
  }

  void set(run::FileTimer request) {
    if (timers.take(request)) return;
    timers.forget_if(is_gone);
    if (timers.take(std::move(request)) || std::exchange(warned_of_number, true)) return;
    callbacks.on_warning(fmt::format("more than {} timers are set in TORCHELASTIC_TIMER_FILE: further ones are ignored",
                                     run::FileTimers::kMost));
  }

  void expire() {
    for (const auto& expired : timers.expire(wall_clock())) callbacks.on_expired(expired);
    set_timer();
  }

  void set_timer() {
    timer.clear();
    auto next = timers.next();
    if (!next) return;
    auto seconds = std::clamp(*next - wall_clock(), 0.0, kLongestSleep);
    timer.set(steady_now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  std::string path;
  boost::asio::posix::stream_descriptor pipe;
  Callbacks callbacks;
  Timer timer;
  run::FileTimers timers;
  std::string line;  // what has come of it; longer than the longest: it is left out
  std::array<char, 4096> buffer{};
  bool warned_of_line = false;
  bool warned_of_number = false;
  bool closed = false;
};

TimerFile::TimerFile(std::shared_ptr<State> state) : state_(std::move(state)) {}

TimerFile::~TimerFile() {
  state_->closed = true;
  state_->timer.clear();
  boost::system::error_code ignored;
  state_->pipe.cancel(ignored);
  ::unlink(state_->path.c_str());
}

Result<std::unique_ptr<TimerFile>> TimerFile::open(boost::asio::io_context& io, std::string path, Callbacks callbacks) {
  auto pipe = make_pipe_at(path);
  if (!pipe) return pipe.error();
  auto state = std::make_shared<State>(io, std::move(path), std::move(*pipe), std::move(callbacks));
  state->wait();
  return std::unique_ptr<TimerFile>(new TimerFile(std::move(state)));
}

bool TimerFile::in_use(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISFIFO(found.st_mode)) return false;
  return static_cast<bool>(Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)));
}

const std::string& TimerFile::path() const { return state_->path; }

void TimerFile::forget_all() {
  state_->timers.forget_if([](int) { return true; });
  state_->set_timer();
}

}  // namespace taas::node
