#include "ui/console.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "base/files.hpp"
#include "catch.hpp"

namespace console_test {

using namespace taas;
using namespace taas::ui;

namespace {

struct IgnoreBrokenPipes {
  IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }
} const ignore_broken_pipes;

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

Fd dup_of(const Fd& fd) { return Fd(::dup(fd.get())); }

bool is_blocking(const Fd& fd) { return (::fcntl(fd.get(), F_GETFL) & O_NONBLOCK) == 0; }

/// Reads what is there, without waiting.
std::string take(const Fd& fd) {
  std::string text(65536, '\0');
  auto count = ::read(fd.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// Runs the loop and reads until `size` bytes have come.
std::string read_all(boost::asio::io_context& io, const Fd& reader, std::size_t size) {
  std::string received;
  while (received.size() < size) {
    io.restart();
    io.poll();
    received += take(reader);
  }
  return received;
}

struct Ends {
  Fd reader;
  Fd writer;
};

Ends pipe_ends() {
  auto pipe = make_pipe().value();
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return {std::move(pipe.read), std::move(pipe.write)};
}

Ends socket_ends() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends terminal_ends() {
  int reader = -1, writer = -1;
  REQUIRE(::openpty(&reader, &writer, nullptr, nullptr, nullptr) == 0);
  termios raw{};
  ::tcgetattr(writer, &raw);
  ::cfmakeraw(&raw);
  ::tcsetattr(writer, TCSANOW, &raw);
  ::fcntl(reader, F_SETFL, O_NONBLOCK);
  return {Fd(reader), Fd(writer)};
}

}  // namespace

TEST_CASE("a reader that does not read stops nobody and later gets every byte") {
  Ends (*make_ends)() = GENERATE(pipe_ends, socket_ends, terminal_ends);
  auto ends = make_ends();
  boost::asio::io_context io;
  Console console(io, dup_of(ends.writer));
  auto text = numbered_lines(100000);
  for (std::size_t i = 0; i < text.size(); i += 1000) console.write(std::string_view(text).substr(i, 1000));
  CHECK(console.pending() > 0);
  while (io.poll() > 0) {
  }  // a terminal takes some more when the kernel has passed on what it had
  CHECK(console.pending() > 0);
  CHECK(is_blocking(ends.writer));
  CHECK(read_all(io, ends.reader, text.size()) == text);
  CHECK(console.pending() == 0);
}

TEST_CASE("back-pressure is told and taken back") {
  auto ends = pipe_ends();
  boost::asio::io_context io;
  std::vector<bool> told;
  Console console(io, dup_of(ends.writer), {100000, 1000, [&](bool crowded) { told.push_back(crowded); }});
  std::string text(300000, 'x');
  console.write(text);
  CHECK(told == std::vector<bool>{true});
  read_all(io, ends.reader, text.size());
  CHECK(told == std::vector<bool>{true, false});
}

TEST_CASE("a reader that went away silences the console") {
  auto ends = pipe_ends();
  boost::asio::io_context io;
  std::vector<bool> told;
  Console console(io, dup_of(ends.writer), {1000, 100, [&](bool crowded) { told.push_back(crowded); }});
  SECTION("before the first byte") {
    ends.reader.reset();
    console.write("text");
  }
  SECTION("while bytes wait") {
    console.write(std::string(300000, 'x'));
    REQUIRE(console.pending() > 0);
    ends.reader.reset();
    while (console.pending() > 0) io.run_one();
    CHECK(told == std::vector<bool>{true, false});
  }
  CHECK(console.pending() == 0);
  console.write("more");
  CHECK(console.pending() == 0);
  CHECK(console.finish(steady_now()) == 0);
  CHECK(console.lost().has_value());
}

TEST_CASE("a terminal that was closed silences the console") {
  auto ends = terminal_ends();
  boost::asio::io_context io;
  Console console(io, std::move(ends.writer));
  ends.reader.reset();
  console.write("text");
  CHECK(console.finish(steady_now()) == 0);
  CHECK(console.lost().has_value());
}

TEST_CASE("finish() waits for the reader, but not for ever") {
  auto ends = pipe_ends();
  boost::asio::io_context io;
  Console console(io, dup_of(ends.writer));
  console.write(std::string(300000, 'x'));
  CHECK(console.finish(steady_now() + std::chrono::milliseconds(20)) > 0);
  std::string received;
  while (console.finish(steady_now()) > 0) received += take(ends.reader);
  received += take(ends.reader);
  CHECK(received == std::string(300000, 'x'));
}

TEST_CASE("a console may go before its loop") {
  auto ends = pipe_ends();
  boost::asio::io_context io;
  {
    Console console(io, dup_of(ends.writer));
    console.write(std::string(300000, 'x'));
  }
  take(ends.reader);
  io.poll();
  SUCCEED();
}

TEST_CASE("files and /dev/null take everything at once") {
  boost::asio::io_context io;
  char path[] = "/tmp/taas-console-XXXXXX";
  Fd file(::mkstemp(path));
  REQUIRE(file);
  auto text = numbered_lines(10000);
  Console console(io, dup_of(file));
  console.write(text);
  CHECK(console.pending() == 0);
  CHECK(read_file(path).value() == text);
  ::unlink(path);
  Console null(io, Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  null.write(text);
  CHECK(null.pending() == 0);
}

TEST_CASE("a full disk silences the console, which tells of the loss") {
  boost::asio::io_context io;
  Console full(io, Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  CHECK(full.lost().has_value());
  full.write("text");
  full.write("more");
  CHECK(full.pending() == 0);
  CHECK(full.lost().error().system_errno == ENOSPC);
}

TEST_CASE("a file is written on the disk thread: in order, and what waits is told as crowded") {
  boost::asio::io_context io;
  DiskThread disk(io);
  std::FILE* file = std::tmpfile();
  std::promise<void> thaw;
  disk.run([frozen = thaw.get_future().share()] { frozen.wait(); });
  std::vector<bool> crowded;
  Console::Options options;
  options.high = 1000;
  options.low = 100;
  options.on_crowded = [&](bool now) { crowded.push_back(now); };
  options.disk = &disk;
  Console console(io, Fd(::dup(::fileno(file))), options);
  const auto text = numbered_lines(1000);
  for (std::size_t at = 0; at < text.size(); at += 10) console.write(text.substr(at, 10));
  CHECK(crowded == std::vector{true});
  CHECK(console.pending() == text.size());
  CHECK(console.finish(steady_now()) == text.size());
  thaw.set_value();
  CHECK(console.finish(steady_now() + std::chrono::hours(1)) == 0);
  io.run();
  CHECK(crowded == std::vector{true, false});
  std::rewind(file);
  std::string kept(text.size() + 1, '\0');
  kept.resize(std::fread(kept.data(), 1, kept.size(), file));
  CHECK(kept == text);
  std::fclose(file);
}

TEST_CASE("a full disk is noticed on the disk thread, too") {
  boost::asio::io_context io;
  DiskThread disk(io);
  Console::Options options;
  options.disk = &disk;
  Console console(io, Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)), options);
  console.write("text\n");
  CHECK(console.finish(steady_now() + std::chrono::hours(1)) == 0);
  REQUIRE_FALSE(console.lost().has_value());
  CHECK(console.lost().error().system_errno == ENOSPC);
}

}  // namespace console_test
