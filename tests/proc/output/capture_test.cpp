#include "proc/output/capture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "held_path.hpp"
#include "proc/file_size_limit.hpp"
#include "proc/output/log_writer.hpp"
#include "proc/output/terminal.hpp"
#include "proc/processes.hpp"

namespace capture_test {

using namespace taas;
using namespace taas::test;
using namespace std::string_literals;

namespace {

/// A capture of a pipe that the test writes to.
struct Fixture {
  explicit Fixture(const std::string& log_path = "") : Fixture(held_path(log_path)) {}
  explicit Fixture(HeldPath log) {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    writer = std::move(pipe->write);
    capture.emplace(io, std::move(pipe->read), CaptureLog{&disk, std::move(log)},
                    CaptureCallbacks{
                        .on_bytes = [this](std::string_view bytes, Instant) { text += bytes; },
                        .on_end = [this] { ended = true; },
                        .on_log_error = [this](const Error& error) { log_errors.push_back(error); },
                    });
  }
  void write(std::string_view bytes) { REQUIRE(write_all(writer, bytes).has_value()); }
  bool run_until_end() {
    return run_until(io, [this] { return ended; });
  }

  boost::asio::io_context io;
  DiskThread disk{io};
  Fd writer;
  std::optional<Capture> capture;
  std::string text;
  bool ended = false;
  std::vector<Error> log_errors;
};

}  // namespace

TEST_CASE("a terminal passes bytes on as they are, at once, and its end is told") {
  auto terminal = make_terminal(-1);
  REQUIRE(terminal.has_value());
  CHECK(::isatty(terminal->write.get()) == 1);
  boost::asio::io_context io;
  std::string text;
  bool ended = false;
  Capture capture(io, std::move(terminal->read), {},
                  {.on_bytes = [&](std::string_view bytes, Instant) { text += bytes; },
                   .on_end = [&] { ended = true; },
                   .on_log_error = {}});
  const std::string said = "one\r\ntwo\n\x03\x04\tthree";
  REQUIRE(write_all(terminal->write, said).has_value());
  capture.drain_now();
  CHECK(text == said);
  terminal->write.reset();
  CHECK(run_until(io, [&] { return ended; }));
}

TEST_CASE("bytes reach the callback and the file unchanged, then the end is told") {
  TemporaryFolder folder;
  Fixture fixture(folder / "stdout.log");
  auto bytes = "line\n\r50%\r100%\0binary\xff no newline"s;
  fixture.write(bytes);
  fixture.writer.reset();
  REQUIRE(fixture.run_until_end());
  CHECK(fixture.text == bytes);
  CHECK(*read_file(folder / "stdout.log") == bytes);
  CHECK(fixture.capture->ended());
  CHECK(fixture.log_errors.empty());
}

TEST_CASE("much output arrives whole") {
  TemporaryFolder folder;
  boost::asio::io_context io;
  DiskThread disk(io);
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto request = shell("yes 0123456789 | head -c 3000000");
  request.standard_output = &pipe->write;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  pipe->write.reset();
  std::string text;
  bool ended = false;
  Capture capture(io, std::move(pipe->read), {&disk, held_path(folder / "log")},
                  {.on_bytes = [&](std::string_view bytes, Instant) { text += bytes; },
                   .on_end = [&] { ended = true; },
                   .on_log_error = {}});
  REQUIRE(run_until(io, [&] { return ended; }));
  CHECK(text.size() == 3000000);
  CHECK(*read_file(folder / "log") == text);
  CHECK(wait_for_exit(std::move(*child)).success());
}

TEST_CASE("drain_now takes what is there without the loop and waits for nothing") {
  Fixture fixture;
  fixture.capture->drain_now();
  CHECK(fixture.text.empty());
  std::string words(100'000, 'x');  // more than one read
  REQUIRE(::fcntl(fixture.writer.get(), F_SETPIPE_SZ, 1 << 18) > 0);
  fixture.write(words);
  fixture.capture->pause();
  fixture.capture->drain_now();
  CHECK(fixture.text == words);
  CHECK_FALSE(fixture.ended);
  fixture.capture->resume();
  fixture.writer.reset();
  CHECK(fixture.run_until_end());
}

TEST_CASE("a paused capture reads nothing until it is resumed") {
  Fixture fixture;
  fixture.capture->pause();
  fixture.write("held back");
  for (int turn = 0; turn < 10; ++turn) fixture.io.poll();
  CHECK(fixture.text.empty());
  fixture.capture->resume();
  fixture.writer.reset();
  REQUIRE(fixture.run_until_end());
  CHECK(fixture.text == "held back");
}

TEST_CASE("pausing inside the callback stops after that piece") {
  boost::asio::io_context io;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  REQUIRE(::fcntl(pipe->write.get(), F_SETPIPE_SZ, 1 << 18) > 0);
  REQUIRE(write_all(pipe->write, std::string(150'000, 'x')).has_value());
  pipe->write.reset();
  std::optional<Capture> capture;
  std::size_t seen = 0;
  int pieces = 0;
  bool ended = false;
  capture.emplace(io, std::move(pipe->read), CaptureLog{},
                  CaptureCallbacks{.on_bytes =
                                       [&](std::string_view bytes, Instant) {
                                         seen += bytes.size();
                                         ++pieces;
                                         capture->pause();
                                       },
                                   .on_end = [&] { ended = true; },
                                   .on_log_error = {}});
  while (!ended) {
    auto before = pieces;
    io.restart();
    io.poll();
    REQUIRE(pieces <= before + 1);
    capture->resume();
  }
  CHECK(seen == 150'000);
  CHECK(pieces >= 3);
}

TEST_CASE("a full disk is told once, naming the file, and the bytes still come") {
  TemporaryFolder folder;
  Fixture fixture(folder / "log");
  const FileSizeLimit limit(2);
  fixture.write("one\n");
  fixture.capture->drain_now();
  fixture.write("two\n");
  fixture.writer.reset();
  REQUIRE(fixture.run_until_end());
  CHECK(fixture.text == "one\ntwo\n");
  REQUIRE(fixture.log_errors.size() == 1);
  CHECK(fixture.log_errors[0].system_errno == EFBIG);
  CHECK_THAT(fixture.log_errors[0].message, ContainsSubstring(folder / "log"));
}

TEST_CASE("a file that cannot be opened is told once, naming it, and the bytes still come") {
  TemporaryFolder folder;
  Fixture fixture({HeldFolder::open(folder / "").value(), "no/stdout.log"});
  CHECK(fixture.log_errors.empty());  // not from within the constructor
  fixture.write("text");
  fixture.writer.reset();
  REQUIRE(fixture.run_until_end());
  CHECK(fixture.text == "text");
  REQUIRE(fixture.log_errors.size() == 1);
  CHECK(fixture.log_errors[0].system_errno == ENOENT);
  CHECK_THAT(fixture.log_errors[0].message, ContainsSubstring("no/stdout.log"));
}

TEST_CASE("a log file is appended to") {
  TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    Fixture fixture(folder / "log");
    fixture.write("again\n");
    fixture.writer.reset();
    REQUIRE(fixture.run_until_end());
  }
  CHECK(*read_file(folder / "log") == "again\nagain\n");
}

/// The disk's thread waits until the test lets it go.
TEST_CASE("a disk that takes nothing holds up the rank in the end, and never the loop") {
  TemporaryFolder folder;
  auto hold = make_pipe().value();
  Fixture fixture(folder / "log");
  ssize_t count_at_end = -1;  // read once the loop has been told of the end
  fixture.disk.run([end = hold.read.get(), &count_at_end] {
    char byte = 0;
    count_at_end = ::read(end, &byte, 1);
  });
  REQUIRE(::fcntl(fixture.writer.get(), F_SETFL, O_NONBLOCK) == 0);
  const std::string words(64 * 1024, 'x');
  std::size_t written = 0;
  for (bool moved = true; moved;) {
    auto count = ::write(fixture.writer.get(), words.data(), words.size());
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    const auto before = fixture.text.size();
    fixture.io.restart();
    fixture.io.poll();
    moved = count > 0 || fixture.text.size() > before;
  }
  CHECK(fixture.text.size() > LogWriter::kCrowded);
  CHECK(fixture.text.size() <= LogWriter::kCrowded + words.size());
  CHECK(written > fixture.text.size());

  fixture.writer.reset();
  hold.write.reset();
  CHECK(fixture.run_until_end());
  CHECK(count_at_end == 0);
  CHECK(fixture.text.size() == written);
  CHECK(*read_file(folder / "log") == fixture.text);
}

TEST_CASE("a callback may destroy its capture") {
  boost::asio::io_context io;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  REQUIRE(write_all(pipe->write, "text").has_value());
  std::optional<Capture> capture;
  bool told = false;
  capture.emplace(io, std::move(pipe->read), CaptureLog{},
                  CaptureCallbacks{.on_bytes =
                                       [&](std::string_view, Instant) {
                                         capture.reset();
                                         told = true;
                                       },
                                   .on_end = [] { FAIL("told after the capture is gone"); },
                                   .on_log_error = {}});
  CHECK(run_until(io, [&] { return told; }));
  pipe->write.reset();
  io.poll();
}

TEST_CASE("a grandchild that keeps the pipe does not keep back the last words") {
  boost::asio::io_context io;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto hold = make_pipe();
  REQUIRE(hold.has_value());
  auto request = shell("exec 3<&0; (read line <&3; echo late) & echo last words");
  request.standard_input = &hold->read;
  request.standard_output = &pipe->write;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  pipe->write.reset();
  std::string text;
  bool ended = false, exited = false;
  Capture capture(io, std::move(pipe->read), {},
                  {.on_bytes = [&](std::string_view bytes, Instant) { text += bytes; },
                   .on_end = [&] { ended = true; },
                   .on_log_error = {}});
  ExitWatch watch(io, std::move(*child), [&](ExitStatus, Instant) {
    capture.drain_now();
    exited = true;
    CHECK(text == "last words\n");
  });
  REQUIRE(run_until(io, [&] { return exited; }));
  CHECK_FALSE(ended);
  hold->write.reset();
  REQUIRE(run_until(io, [&] { return ended; }));
  CHECK(text == "last words\nlate\n");
}

}  // namespace capture_test
