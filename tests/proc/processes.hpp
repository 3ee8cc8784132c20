#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/ids.hpp"
#include "catch.hpp"
#include "proc/family/exits.hpp"
#include "proc/spawn/spawn.hpp"

// Real processes for the tests of this layer. Every wait has a deadline that only a failing test reaches.

namespace taas::test {

inline std::vector<std::string> current_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

inline SpawnRequest shell(std::string script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", std::move(script)};
  request.environment = current_environment();
  return request;
}

/// Turns the loop until `done` or for 20 seconds; false then.
template <class Done>
bool run_until(boost::asio::io_context& io, Done done) {
  auto late = std::make_shared<bool>(false);  // the cancelled wait may complete in a later call
  boost::asio::steady_timer deadline(io, std::chrono::seconds(20));
  deadline.async_wait([late](boost::system::error_code cancelled) { *late = !cancelled; });
  io.restart();
  while (!done() && !*late) io.run_one();
  return done();
}

inline ExitStatus wait_for_exit(Child child) {
  boost::asio::io_context io;
  std::optional<ExitStatus> status;
  ExitWatch watch(io, std::move(child), [&](ExitStatus ended, Instant) { status = ended; });
  REQUIRE(run_until(io, [&] { return status.has_value(); }));
  return *status;
}

/// Like read(2), but not cut short by a signal.
inline ssize_t read_some(const Fd& pipe, char* to, std::size_t size) {
  for (;;) {
    auto count = ::read(pipe.get(), to, size);
    if (count >= 0 || errno != EINTR) return count;
  }
}

/// Everything up to the end of the pipe.
inline std::string read_to_end(const Fd& pipe) {
  std::string text;
  char chunk[4096];
  for (;;) {
    auto count = read_some(pipe, chunk, sizeof chunk);
    if (count <= 0) return text;
    text.append(chunk, static_cast<std::size_t>(count));
  }
}

inline std::string read_line(const Fd& pipe) {
  std::string line;
  for (char next = 0; read_some(pipe, &next, 1) == 1 && next != '\n';) line += next;
  return line;
}

/// What a process writes to its stdout until nobody holds it open.
inline std::string output_of(SpawnRequest request, ExitStatus* status = nullptr) {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  request.standard_output = &pipe->write;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  pipe->write.reset();
  auto text = read_to_end(pipe->read);
  auto ended = wait_for_exit(std::move(*child));
  if (status != nullptr) *status = ended;
  return text;
}

/// A folder that is removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / ("taas-test-" + random_hex(6))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace taas::test
