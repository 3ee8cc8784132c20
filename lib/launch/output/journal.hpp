#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/disk_thread.hpp"
#include "launch/output/journal_file.hpp"
#include "run/events/data_events.hpp"
#include "run/events/events.hpp"

namespace taas::launch {

/// Writes the run's journal without ever waiting for its disk: what a disk that is too slow does not take is missing in
/// the end, and the file says how many lines. What data delivery tells each second is written less and less often as
/// the run goes on, so that a journal of weeks can still be read.
class Journal {
 public:
  /// `on_error` is called in the event loop, at most once.
  Journal(boost::asio::io_context& io, JournalFile file, std::function<void(const Error&)> on_error);
  ~Journal();

  void write(const run::Event& event);
  void write(const run::Action& action);
  void write(const run::DataEvent& event);
  /// Waits for the disk, for the end of the run: what on_error has not been told yet.
  Result<> finish(Duration patience);

 private:
  struct File;
  void append(std::string line, JournalFile::Must must = JournalFile::Must::kNo);
  [[nodiscard]] bool is_due(const std::string& subject, Instant at);

  std::shared_ptr<File> file_;
  Instant run_start_;
  std::function<void(const Error&)> on_error_;
  std::map<std::string, Instant> written_;  // of what is told again and again: when last
  std::size_t waiting_ = 0;                 // bytes
  long dropped_ = 0;                        // lines
  DiskThread disk_;
};

}  // namespace taas::launch
