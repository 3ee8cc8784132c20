#include "launch/output/journal.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "run/messages/journal.hpp"

namespace taas::launch {
namespace {

constexpr std::size_t kMostWaiting = 8 << 20;  // bytes
constexpr int kLinesOfAge = 600;               // of one subject while the age of the run grows to e times as much

/// What is told again and again until it is done.
std::string subject_of(const run::DataProgress& told) {
  return told.done ? "" : fmt::format("progress {} {}", told.rank.value, told.loader);
}
std::string subject_of(const run::DataPrepared& told) {
  return told.done ? "" : fmt::format("prepared {}", told.worker);
}
std::string subject_of(const run::DataWork& told) { return fmt::format("work {}", told.worker); }
std::string subject_of(const run::DataWorkerEnded& /*unused*/) { return ""; }

}  // namespace

struct Journal::File {
  explicit File(JournalFile opened) : file(std::move(opened)) {}

  void append(const std::string& line, JournalFile::Must must, long missed) {
    file.miss(missed);
    auto written = file.append(line, must);
    if (written) return;
    std::lock_guard lock(mutex);
    failure = written.error();
  }

  Result<> take_failure() {
    std::lock_guard lock(mutex);
    auto taken = std::exchange(failure, std::nullopt);
    return taken ? Result<>(std::move(*taken)) : Result<>();
  }

  JournalFile file;  // on the disk thread only
  std::mutex mutex;
  std::optional<Error> failure;
};

Journal::Journal(boost::asio::io_context& io, JournalFile file, std::function<void(const Error&)> on_error)
    : run_start_(file.run_start()), on_error_(std::move(on_error)), disk_(io) {
  file_ = std::make_shared<File>(std::move(file));
}

Journal::~Journal() = default;

void Journal::write(const run::Event& event) { append(run::journal_line(event, run_start_)); }

void Journal::write(const run::Action& action) {
  bool last = std::holds_alternative<run::Finish>(action);
  append(run::journal_line(action, run_start_), last ? JournalFile::Must::kYes : JournalFile::Must::kNo);
}

void Journal::write(const run::DataEvent& event) {
  bool due = std::visit([this](const auto& told) { return is_due(subject_of(told), told.at); }, event);
  if (due) append(run::journal_line(event, run_start_));
}

bool Journal::is_due(const std::string& subject, Instant at) {
  if (subject.empty()) return true;
  auto [last, first_time] = written_.emplace(subject, at);
  if (!first_time && at - last->second < (at - run_start_) / kLinesOfAge) return false;
  last->second = at;
  return true;
}

void Journal::append(std::string line, JournalFile::Must must) {
  auto size = line.size();
  if (waiting_ + size > kMostWaiting && must == JournalFile::Must::kNo) {
    ++dropped_;
    return;
  }
  waiting_ += size;
  disk_.run([=, file = file_, missed = std::exchange(dropped_, 0),
             text = std::move(line)] { file->append(text, must, missed); },
            [this, size] {
              waiting_ -= size;
              if (auto failed = file_->take_failure(); !failed) on_error_(failed.error());
            });
}

Result<> Journal::finish(Duration patience) {
  if (!disk_.finish(patience)) {
    return unavailable_error(fmt::format(
        "the journal's disk has taken nothing for {:g} s: the run's last events are not in it", seconds(patience)));
  }
  return file_->take_failure();
}

}  // namespace taas::launch
