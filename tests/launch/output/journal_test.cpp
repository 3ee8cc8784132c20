#include "launch/output/journal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/files.hpp"
#include "catch.hpp"
#include "held_path.hpp"

namespace journal_test {

using namespace taas;
using namespace taas::launch;
using namespace std::chrono_literals;

namespace {

struct Fixture {
  Fixture() {
    std::string pattern = std::filesystem::temp_directory_path() / "taas-journal-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~Fixture() { std::filesystem::remove_all(folder); }

  std::unique_ptr<Journal> open() { return write_to(JournalFile::open(held_path(path()), start).value()); }
  std::unique_ptr<Journal> write_to(JournalFile file) {
    return std::make_unique<Journal>(io, std::move(file), [this](const Error& error) { errors.push_back(error); });
  }
  [[nodiscard]] std::string path() const { return folder / "journal.jsonl"; }
  [[nodiscard]] std::vector<boost::json::object> lines() const { return parse(read_file(path()).value()); }
  static std::vector<boost::json::object> parse(const std::string& text) {
    std::vector<boost::json::object> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(boost::json::parse(line).as_object());
    return lines;
  }

  boost::asio::io_context io;
  Instant start = steady_now();
  std::filesystem::path folder;
  std::vector<Error> errors;
};

run::DataEvent progress(Instant at, bool done = false) {
  run::DataProgress told;
  told.loader = "train";
  told.done = done;
  told.at = at;
  return told;
}

}  // namespace

TEST_CASE("a journal has its lines in order when it is finished") {
  Fixture fixture;
  auto journal = fixture.open();
  for (int signal : {10, 12, 15}) journal->write(run::Event(run::SignalReceived{signal, steady_now()}));
  CHECK(journal->finish(10s).has_value());
  auto lines = fixture.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("signal") == 10);
  CHECK(lines[2].at("signal") == 15);
}

TEST_CASE("what data delivery tells each second is written less often as the run goes on, and always when it is done") {
  Fixture fixture;
  auto journal = fixture.open();
  const int seconds = 7 * 24 * 3600;
  for (int second = 0; second < seconds; ++second) journal->write(progress(fixture.start + second * 1s));
  journal->write(progress(fixture.start + seconds * 1s, true));
  CHECK(journal->finish(60s).has_value());
  auto lines = fixture.lines();
  CHECK(lines.size() > 1000);
  CHECK(lines.size() < 6000);
  CHECK(std::abs(lines[1].at("t").as_double() - lines[0].at("t").as_double() - 1) < 0.01);
  CHECK(lines.back().at("done") == true);
}

/// The disk is a named pipe here: it takes 64 KiB and then nothing until it is read.
TEST_CASE("a disk that takes nothing costs lines, no memory without end and no waiting") {
  Fixture fixture;
  REQUIRE(::mkfifo(fixture.path().c_str(), 0600) == 0);
  Fd disk(::open(fixture.path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const int events = 200'000;  // about 13 MB
  Fd end(::open(fixture.path().c_str(), O_WRONLY | O_CLOEXEC));
  auto journal = fixture.write_to({fixture.path(), std::move(end), fixture.start});
  for (int i = 0; i < events; ++i) journal->write(run::Event(run::SignalReceived{i, steady_now()}));
  REQUIRE(::fcntl(disk.get(), F_SETFL, 0) == 0);
  std::string text;
  std::thread reader([&] { text = read_all(disk).value(); });
  CHECK(journal->finish(20s).has_value());
  fixture.io.poll();
  journal->write(run::Event(run::SignalReceived{events, steady_now()}));
  CHECK(journal->finish(20s).has_value());
  journal.reset();  // closes the pipe
  reader.join();
  auto lines = Fixture::parse(text);
  long written = 0;
  long missing = 0;
  for (const auto& line : lines) {
    bool gap = line.at("event") == "journal_gap";
    gap ? missing += line.at("lines").as_int64() : ++written;
  }
  CHECK(missing > 0);
  CHECK(written + missing == events + 1);
  CHECK(lines.back().at("signal") == events);
}

}  // namespace journal_test
