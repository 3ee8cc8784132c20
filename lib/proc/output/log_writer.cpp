#include "proc/output/log_writer.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "proc/output/log_file.hpp"

namespace taas {

struct LogWriter::State : std::enable_shared_from_this<State> {
  State(DiskThread& thread, HeldPath place, LogWriterCallbacks calls)
      : disk(thread), callbacks(std::move(calls)), file(std::move(place)) {}

  /// The file is made even if nothing is ever written.
  void open() {
    disk.run([self = shared_from_this()] { self->note(self->file.open()); },
             [self = shared_from_this()] { self->tell(); });
  }

  void append(std::string_view bytes) {
    {
      std::lock_guard lock(mutex);
      waiting += bytes;
      held += bytes.size();
      if (std::exchange(on_its_way, true)) return;
    }
    disk.run([self = shared_from_this()] { self->write_out(); }, [self = shared_from_this()] { self->tell(); });
  }

  void write_out() {
    for (;;) {
      {
        std::lock_guard lock(mutex);
        held -= taken.size();
        taken.clear();
        on_its_way = !waiting.empty();
        if (!on_its_way) return;
        taken.swap(waiting);
      }
      note(file.append(taken));
    }
  }

  void note(const Result<>& written) {
    if (written) return;
    std::lock_guard lock(mutex);
    failure = written.error();
  }

  void tell() {
    if (parted) return;
    std::optional<Error> failed;
    {
      std::lock_guard lock(mutex);
      failed = std::exchange(failure, std::nullopt);
    }
    if (failed && callbacks.on_error) callbacks.on_error(*failed);
    if (was_crowded && bytes_held() <= kRoom) {
      was_crowded = false;
      if (!parted && callbacks.on_room) callbacks.on_room();
    }
  }

  std::size_t bytes_held() const {
    std::lock_guard lock(mutex);
    return held;
  }

  DiskThread& disk;
  LogWriterCallbacks callbacks;
  bool was_crowded = false;  // in the event loop only, as what is above
  bool parted = false;
  bool closing = false;

  LogFile file;       // on the disk thread only
  std::string taken;  // the same

  mutable std::mutex mutex;  // guards all that follows
  std::string waiting;
  std::size_t held = 0;  // bytes, of waiting and of taken
  bool on_its_way = false;
  std::optional<Error> failure;
};

LogWriter::LogWriter(DiskThread& disk, HeldPath place, LogWriterCallbacks callbacks)
    : state_(std::make_shared<State>(disk, std::move(place), std::move(callbacks))) {
  state_->open();
}

/// Closing, too, may have to wait for the disk.
LogWriter::~LogWriter() {
  state_->parted = true;
  if (!state_->closing) close(nullptr);
}

void LogWriter::append(std::string_view bytes) { state_->append(bytes); }

bool LogWriter::crowded() const {
  if (state_->bytes_held() > kCrowded) state_->was_crowded = true;
  return state_->was_crowded;
}

void LogWriter::close(std::function<void()> then) {
  state_->closing = true;
  state_->disk.run([self = state_] { self->file.close(); }, std::move(then));
}

}  // namespace taas
