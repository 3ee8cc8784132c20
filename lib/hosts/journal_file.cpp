#include "hosts/journal_file.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/files.hpp"
#include "run/journal.hpp"

namespace taas::hosts {

Result<JournalFile> JournalFile::open(const std::string& path, Instant run_start) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) return system_error("cannot open the journal " + path, errno);
  return JournalFile(path, std::move(file), run_start);
}

JournalFile::JournalFile(std::string path, Fd file, Instant run_start)
    : path_(std::move(path)), file_(std::move(file)), run_start_(run_start) {}

Result<> JournalFile::write(const run::Event& event) { return append(run::journal_line(event, run_start_)); }

Result<> JournalFile::write(const run::Action& action) { return append(run::journal_line(action, run_start_)); }

Result<> JournalFile::write(const run::DataEvent& event) { return append(run::journal_line(event, run_start_)); }

Result<> JournalFile::append(std::string line) {
  if (!file_) return {};
  line += '\n';
  auto written = write_all(file_, line);
  if (written) return {};
  file_.reset();
  return std::move(written.error()).with("the journal " + path_ + " ends here");
}

}  // namespace taas::hosts
