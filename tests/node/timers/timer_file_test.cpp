#include "node/timers/timer_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "run_until.hpp"

namespace timer_file_test {

using namespace taas;
using node::TimerFile;

namespace {

/// A folder of its own, a pipe in it, and what it tells.
struct Served {
  Served() : path(make_folder() + "/timers") {}
  ~Served() {
    file.reset();
    std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  static std::string make_folder() {
    std::string name = std::filesystem::temp_directory_path() / "timer_file_test.XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return name;
  }

  Result<> open() {
    TimerFile::Callbacks calls;
    calls.on_expired = [this](const run::FileTimer& timer) { expired.push_back(timer.scope); };
    calls.on_warning = [this](const std::string& text) { warnings.push_back(text); };
    auto opened = TimerFile::open(io, path, std::move(calls));
    if (!opened) return opened.error();
    file = std::move(*opened);
    return {};
  }
  void write(const std::string& text) const { std::ofstream(path) << text << std::flush; }
  void ask(const std::string& scope, double expires_at) const {
    write(fmt::format(R"({{"version": 1, "pid": {}, "scope_id": "{}", "expiration_time": {}, "signal": 9}})",
                      ::getpid(), scope, expires_at) +
          "\n");
  }

  boost::asio::io_context io;
  std::string path;
  std::unique_ptr<TimerFile> file;
  std::vector<std::string> expired;
  std::vector<std::string> warnings;
};

}  // namespace

TEST_CASE("a timer of the past expires at once, and one that was released never") {
  Served served;
  REQUIRE(served.open().has_value());
  served.ask("released", 1);
  served.ask("released", -1);
  served.ask("step", 1);
  REQUIRE(run_until(served.io, [&] { return !served.expired.empty(); }));
  CHECK(served.expired == std::vector<std::string>{"step"});
  CHECK(served.warnings.empty());
}

TEST_CASE("lines that are no requests are ignored, with one warning for all") {
  Served served;
  REQUIRE(served.open().has_value());
  served.write("garbage\n{}\n" + std::string(20000, 'x') + "\n");
  served.ask("step", 1);
  REQUIRE(run_until(served.io, [&] { return !served.expired.empty(); }));
  CHECK(served.warnings.size() == 1);
}

TEST_CASE("a request may come in pieces") {
  Served served;
  REQUIRE(served.open().has_value());
  served.write(R"({"pid": 1, "scope_id": "st)");
  REQUIRE(run_until(served.io, [&, turns = 0]() mutable { return ++turns > 1; }));
  served.write("ep\", \"expiration_time\": 1, \"signal\": 9}\n");
  REQUIRE(run_until(served.io, [&] { return !served.expired.empty(); }));
  CHECK(served.expired == std::vector<std::string>{"step"});
}

TEST_CASE("what is forgotten does not expire") {
  Served served;
  REQUIRE(served.open().has_value());
  served.ask("old", 4e9);
  served.ask("first", 1);
  REQUIRE(run_until(served.io, [&] { return !served.expired.empty(); }));
  served.file->forget_all();
  CHECK(served.expired == std::vector<std::string>{"first"});
}

TEST_CASE("a pipe that nobody reads is replaced, and a user's file left alone") {
  Served served;
  REQUIRE(served.open().has_value());
  CHECK(TimerFile::in_use(served.path));
  served.file.reset();
  CHECK_FALSE(std::filesystem::exists(served.path));
  REQUIRE(::mkfifo(served.path.c_str(), 0600) == 0);
  CHECK_FALSE(TimerFile::in_use(served.path));
  REQUIRE(served.open().has_value());
  served.file.reset();
  served.write("mine");
  auto refused = served.open();
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find(served.path) != std::string::npos);
  CHECK(std::filesystem::file_size(served.path) == 4);
}

TEST_CASE("what has taken the place of the pipe stays") {
  Served served;
  REQUIRE(served.open().has_value());
  std::filesystem::remove(served.path);
  std::ofstream(served.path) << "weeks of work";
  served.file.reset();
  CHECK(std::filesystem::file_size(served.path) == std::string("weeks of work").size());
}

}  // namespace timer_file_test
