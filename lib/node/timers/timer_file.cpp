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
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fd.hpp"
#include "base/folders/beneath.hpp"
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

/// The folder that the pipe is in, which is held: ranks know the path.
struct PipePlace {
  Fd folder;
  std::string name;

  static Result<PipePlace> open(const std::string& path) {
    const std::filesystem::path whole(path);
    auto folder = open_folder(whole.has_parent_path() ? whole.parent_path().string() : ".");
    if (!folder) return std::move(folder.error()).with("TORCHELASTIC_TIMER_FILE");
    return PipePlace{std::move(*folder), whole.filename().string()};
  }
  /// What has the name, no link followed.
  [[nodiscard]] std::optional<struct stat> find() const {
    struct stat found {};
    if (::fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return found;
  }
  void remove() const { ::unlinkat(folder.get(), name.c_str(), 0); }
};

bool is_pipe(const Fd& fd) {
  struct stat status {};
  return ::fstat(fd.get(), &status) == 0 && S_ISFIFO(status.st_mode);
}

Result<Fd> make_pipe_at(const PipePlace& place, const std::string& path) {
  if (const auto found = place.find()) {
    if (!S_ISFIFO(found->st_mode)) {
      return usage_error(
          fmt::format("TORCHELASTIC_TIMER_FILE={}: there is something that is not a named pipe; name a "
                      "path that is free, or none",
                      path));
    }
    place.remove();
  }
  if (::mkfifoat(place.folder.get(), place.name.c_str(), kOwnerOnly) != 0) {
    return system_error("cannot make the named pipe " + path, errno);
  }
  constexpr int kOwnWriter = O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;  // so it never is at its end
  Fd pipe(::openat(place.folder.get(), place.name.c_str(), kOwnWriter));
  if (!pipe) return system_error("cannot open the named pipe " + path, errno);
  if (!is_pipe(pipe)) return unavailable_error(path + ": something else has taken the name of the named pipe");
  return pipe;
}

}  // namespace

struct TimerFile::State : std::enable_shared_from_this<TimerFile::State> {
  State(boost::asio::io_context& io, std::string where, PipePlace in, Fd fd, Callbacks calls)
      : path(std::move(where)),
        place(std::move(in)),
        pipe(io, fd.release()),
        callbacks(std::move(calls)),
        timer(io, [this] { expire(); }) {}

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

  /// What a rank has put in its place stays.
  void remove() {
    struct stat own {};
    const auto found = place.find();
    const bool is_own =
        found && ::fstat(pipe.native_handle(), &own) == 0 && own.st_ino == found->st_ino && own.st_dev == found->st_dev;
    if (is_own) place.remove();
  }

  std::string path;
  PipePlace place;
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
  state_->remove();
}

Result<std::unique_ptr<TimerFile>> TimerFile::open(boost::asio::io_context& io, std::string path, Callbacks callbacks) {
  auto place = PipePlace::open(path);
  if (!place) return place.error();
  auto pipe = make_pipe_at(*place, path);
  if (!pipe) return pipe.error();
  auto state = std::make_shared<State>(io, std::move(path), std::move(*place), std::move(*pipe), std::move(callbacks));
  state->wait();
  return std::unique_ptr<TimerFile>(new TimerFile(std::move(state)));
}

bool TimerFile::in_use(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISFIFO(found.st_mode)) return false;
  const Fd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  return writer && is_pipe(writer);
}

const std::string& TimerFile::path() const { return state_->path; }

void TimerFile::forget_all() {
  state_->timers.forget_if([](int) { return true; });
  state_->set_timer();
}

}  // namespace taas::node
