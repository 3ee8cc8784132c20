#include "base/log/log_file.hpp"

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/os.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "base/files.hpp"
#include "base/folders/held_folder.hpp"
#include "base/log/log_line.hpp"
#include "base/quiet_thread.hpp"
#include "base/text.hpp"

namespace taas::log {
namespace {

constexpr std::size_t kMostWaiting = 4096;  // lines; the oldest give way where the disk takes none
constexpr auto kPatienceAtExit = std::chrono::milliseconds(500);
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%fZ %P %t %l %v";

/// A file that is moved aside when it is full. Its folder is made with the first line. Both are reached by what is held
/// open: ranks write to the run's folder as well. What fails loses lines, and nothing else.
class RotatedFile {
 public:
  RotatedFile(HeldPath folder, std::string stem) : folder_(std::move(folder)), stem_(std::move(stem)) {}

  void append(std::string_view line) {
    if (file_ && size_ + line.size() > kMostBytes) rotate();
    if (!file_ && !open()) return;
    if (write_all(file_, line)) size_ += line.size();
  }

 private:
  bool open() {
    const auto folder = folder_.folder.make_folder(folder_.name);
    if (!folder) return false;
    auto file = folder->open_to_append(name(0), 0666);
    if (!file) return false;
    const auto end = ::lseek(file->get(), 0, SEEK_END);
    size_ = end > 0 ? static_cast<std::size_t>(end) : 0;
    held_ = *folder;
    file_ = std::move(*file);
    return true;
  }

  void rotate() {
    const int folder = held_.descriptor().get();
    for (auto number = kOldFiles; number > 0; --number) {
      ::renameat(folder, name(number - 1).c_str(), folder, name(number).c_str());
    }
    file_.reset();
  }

  /// launcher-4711.log, launcher-4711.1.log, and so on.
  [[nodiscard]] std::string name(std::size_t number) const {
    return number == 0 ? stem_ + ".log" : fmt::format("{}.{}.log", stem_, number);
  }

  HeldPath folder_;
  std::string stem_;
  HeldFolder held_;
  Fd file_;
  std::size_t size_ = 0;
};

/// One process' lines on their way to its file, and to standard error where that is wanted.
class Writer {
 public:
  Writer(const HeldPath& folder, const std::string& stem, bool console);
  /// False: the system has started no thread for it.
  [[nodiscard]] bool works() const { return logger_ != nullptr; }
  void write(spdlog::log_clock::time_point at, LogLevel level, const std::string& text);
  void flush(std::chrono::milliseconds patience);

 private:
  std::shared_ptr<spdlog::details::thread_pool> thread_;
  std::shared_ptr<spdlog::async_logger> logger_;
  std::mutex mutex_;
  std::condition_variable written_;
  std::size_t wanted_ = 0;   // flushes
  std::size_t flushed_ = 0;  // of them
  friend class Sink;
};

class Sink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Sink(Writer& writer, const HeldPath& folder, const std::string& stem, bool console)
      : writer_(writer), to_console_(console) {
    if (!folder.empty()) file_.emplace(folder, stem);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    if (to_console_) (void)std::fwrite(text.data(), 1, text.size(), stderr);
    if (file_) file_->append({text.data(), text.size()});
  }
  void flush_() override {
    const std::lock_guard lock(writer_.mutex_);
    ++writer_.flushed_;
    writer_.written_.notify_all();
  }

 private:
  Writer& writer_;
  bool to_console_;
  std::optional<RotatedFile> file_;  // where a folder is known
};

Writer::Writer(const HeldPath& folder, const std::string& stem, bool console) {
  std::thread starter;
  auto begun = begin_quietly(starter, [this] {
    try {
      thread_ = std::make_shared<spdlog::details::thread_pool>(kMostWaiting, 1);
    } catch (const std::exception&) {  // none for the pool
    }
  });
  if (begun) starter.join();
  if (!thread_) return;
  logger_ = std::make_shared<spdlog::async_logger>("", std::make_shared<Sink>(*this, folder, stem, console), thread_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
  logger_->set_level(spdlog::level::trace);
  logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>(kPattern, spdlog::pattern_time_type::utc));
  logger_->set_error_handler([](const std::string&) {});
}

void Writer::write(spdlog::log_clock::time_point at, LogLevel level, const std::string& text) {
  logger_->log(at, spdlog::source_loc(), static_cast<spdlog::level::level_enum>(level), text);
}

void Writer::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  auto wanted = ++wanted_;
  lock.unlock();
  logger_->flush();
  lock.lock();
  written_.wait_for(lock, patience, [&] { return flushed_ >= wanted; });
}

struct Line {
  spdlog::log_clock::time_point at;
  LogLevel level;
  std::string text;
};

/// Of one process. A fork begins with a new one: locks and threads of its parent are of no use to it.
struct Log {
  std::mutex mutex;
  pid_t process = ::getpid();
  bool console = false;
  bool is_open = false;
  HeldPath folder;
  std::string name;
  std::deque<Line> kept;
  std::unique_ptr<Writer> writer;
  const Log* parents = nullptr;  // never used again; held so that it does not count as a leak
};

/// For good: lines may come as late as from destructors of static objects.
std::atomic<Log*>& current() {
  static std::atomic<Log*> log{new Log};
  return log;
}

void flush_at_exit() { flush(kPatienceAtExit); }

/// Called under no lock. Two threads of a fork that both make one leave one of them behind.
Log& here() {
  auto* found = current().load(std::memory_order_acquire);
  if (found->process == ::getpid()) return *found;
  auto* own = new Log;
  own->console = found->console;
  own->is_open = found->is_open;
  own->folder = found->folder;
  own->name = found->name;
  own->parents = found;
  current().store(own, std::memory_order_release);
  return *own;
}

void keep(Log& log, Line line) {
  if (log.kept.size() >= kMostKept) log.kept.pop_front();
  log.kept.push_back(std::move(line));
}

/// With the lines that were kept; where there is no thread for it they wait, and a later line tries again.
void write_kept(Log& log) {
  if (!log.writer) {
    auto stem = fmt::format("{}-{}", log.name, log.process);
    auto writer = std::make_unique<Writer>(log.folder, stem, log.console);
    if (!writer->works()) return;
    log.writer = std::move(writer);
    std::atexit(flush_at_exit);
  }
  for (const auto& line : std::exchange(log.kept, {})) log.writer->write(line.at, line.level, line.text);
}

}  // namespace

std::array<std::atomic<LogLevel>, kLogParts> levels = {LogLevel::kWarning, LogLevel::kWarning, LogLevel::kWarning,
                                                       LogLevel::kWarning, LogLevel::kWarning, LogLevel::kWarning,
                                                       LogLevel::kWarning, LogLevel::kWarning};

void write(LogPart part, LogLevel level, const std::string& text) noexcept try {
  auto& log = here();
  Line line{spdlog::log_clock::now(), level, fmt::format("{}: {}", name_of(part), printable(text))};
  const std::lock_guard lock(log.mutex);
  keep(log, std::move(line));
  if (log.is_open || log.console) write_kept(log);
} catch (...) {  // there is no memory for a line, or no thread: the program goes on
}

void configure(const LogSettings& settings) {
  for (std::size_t part = 0; part < kLogParts; ++part) levels[part] = settings.levels[part];
  auto& log = here();
  const std::lock_guard lock(log.mutex);
  log.console = settings.console;
  log.is_open = false;
}

void open(const std::string& folder, std::string name) {
  const std::filesystem::path path(folder);
  auto above = HeldFolder::open(path.parent_path().string());
  auto& log = here();
  const std::lock_guard lock(log.mutex);
  log.folder = above ? HeldPath{std::move(*above), path.filename().string()} : HeldPath();
  log.name = std::move(name);
  log.is_open = true;
  log.writer.reset();
  if (!log.kept.empty()) write_kept(log);
}

std::string name_for_file(std::string_view host) {
  std::string name(host);
  auto stays = [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '.' || letter == '-'; };
  std::replace_if(
      name.begin(), name.end(), [&](char letter) { return !stays(static_cast<unsigned char>(letter)); }, '_');
  return name;
}

Result<> open_as_told(std::string name) {
  const auto* text = std::getenv(kLogVariable);
  auto settings = parse_log_settings(text ? text : "");
  if (!settings) return Error(settings.error()).with(kLogVariable);
  configure(*settings);
  if (const auto* folder = std::getenv(kLogFolderVariable)) open(folder, std::move(name));
  return {};
}

void flush(std::chrono::milliseconds patience) {
  auto& log = here();
  std::unique_lock lock(log.mutex);
  if (log.writer) log.writer->flush(patience);
}

}  // namespace taas::log
