#include "base/log/log_file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files.hpp"
#include "base/log/log.hpp"
#include "base/text.hpp"
#include "catch.hpp"

namespace log_file_test {

using namespace taas;

constexpr auto kPatience = std::chrono::seconds(30);

/// The log is one of the process: each test case begins with its own folder.
struct OwnFolder {
  OwnFolder() {
    std::string name = "/tmp/taas-log-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~OwnFolder() {
    log::configure({});
    std::filesystem::remove_all(path);
  }
  void listen(std::string_view wish) const {
    log::configure(parse_log_settings(wish).value());
    log::open(path + "/log", "agent-a");
  }
  [[nodiscard]] std::string file(pid_t process = ::getpid()) const {
    return fmt::format("{}/log/agent-a-{}.log", path, process);
  }
  [[nodiscard]] std::vector<std::string> lines(pid_t process = ::getpid()) const {
    log::flush(kPatience);
    const auto text = read_file(file(process));
    if (!text) return {};
    auto all = split(*text, '\n');
    return {all.begin(), all.end() - 1};
  }
  std::string path;
};

TEST_CASE("a line has its time, process, thread, level, part and text") {
  const OwnFolder folder;
  folder.listen("debug");
  log::debug(LogPart::kNet, "connected to {}:{}", "10.0.0.1", 29500);
  auto lines = folder.lines();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], ContainsSubstring("Z " + std::to_string(::getpid()) + " "));
  CHECK_THAT(lines[0], ContainsSubstring(" debug net: connected to 10.0.0.1:29500"));
}

TEST_CASE("lines below the level of their part leave no file") {
  const OwnFolder folder;
  folder.listen("warning");
  log::info(LogPart::kAgent, "all is well");
  log::flush(kPatience);
  CHECK_FALSE(std::filesystem::exists(folder.path + "/log"));
}

TEST_CASE("lines from before the folder is known come first") {
  const OwnFolder folder;
  log::configure(parse_log_settings("info").value());
  for (std::size_t i = 0; i < log::kMostKept + 1; ++i) log::info(LogPart::kAgent, "line {}", i);
  folder.listen("info");
  log::info(LogPart::kAgent, "open");
  auto lines = folder.lines();
  REQUIRE(lines.size() == log::kMostKept + 1);
  CHECK_THAT(lines.front(), ContainsSubstring("agent: line 1"));
  CHECK_THAT(lines.back(), ContainsSubstring("agent: open"));
}

TEST_CASE("a line stays one line") {
  const OwnFolder folder;
  folder.listen("info");
  log::info(LogPart::kProcess, "{}", "a\nb\x1b[31m");
  auto lines = folder.lines();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], ContainsSubstring("process: a\\nb\\x1b[31m"));
}

TEST_CASE("a fork writes into a file of its own") {
  const OwnFolder folder;
  folder.listen("info");
  log::info(LogPart::kData, "parent");
  log::flush(kPatience);
  const pid_t child = ::fork();
  if (child == 0) {
    log::info(LogPart::kData, "child");
    log::flush(kPatience);
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(folder.lines().size() == 1);
  auto of_child = folder.lines(child);
  REQUIRE(of_child.size() == 1);
  CHECK_THAT(of_child[0], ContainsSubstring("data: child"));
}

TEST_CASE("a full file makes room for the next one") {
  const OwnFolder folder;
  folder.listen("info");
  const std::string text(1U << 20U, 'x');
  for (std::size_t i = 0; i * text.size() < (log::kOldFiles + 2) * log::kMostBytes; ++i) {
    log::info(LogPart::kData, "{}", text);
    log::flush(kPatience);
  }
  std::uintmax_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path + "/log")) {
    CHECK(entry.file_size() <= log::kMostBytes);
    ++files;
  }
  CHECK(files == log::kOldFiles + 1);
}

TEST_CASE("a folder that cannot be made costs the lines and nothing else") {
  const OwnFolder folder;
  std::ofstream(folder.path + "/log").put(0);
  folder.listen("info");
  log::info(LogPart::kAgent, "for nobody");
  log::flush(kPatience);
  CHECK(std::filesystem::is_regular_file(folder.path + "/log"));
}

TEST_CASE("a named pipe in the place of the file holds nobody up") {
  const OwnFolder folder;
  std::filesystem::create_directory(folder.path + "/log");
  REQUIRE(::mkfifo(folder.file().c_str(), 0600) == 0);  // to open it would wait for a reader
  folder.listen("info");
  for (int i = 0; i < 20'000; ++i) log::info(LogPart::kAgent, "line {}", i);
  log::flush(kPatience);
  CHECK(std::filesystem::is_fifo(folder.file()));
}

TEST_CASE("a link in the place of the folder, or of the file, is not followed") {
  const OwnFolder folder;
  const auto victim = folder.path + "/victim";
  std::filesystem::create_directory(victim);
  std::ofstream(victim + "/notes") << "weeks of work";
  SECTION("of the folder") { std::filesystem::create_symlink(victim, folder.path + "/log"); }
  SECTION("of the file") {
    std::filesystem::create_directory(folder.path + "/log");
    std::filesystem::create_symlink(victim + "/notes", folder.file());
  }
  SECTION("of the file, as a second name") {
    std::filesystem::create_directory(folder.path + "/log");
    std::filesystem::create_hard_link(victim + "/notes", folder.file());
  }
  folder.listen("info");
  log::info(LogPart::kAgent, "for nobody");
  log::flush(kPatience);
  CHECK(*read_file(victim + "/notes") == "weeks of work");
  CHECK(std::distance(std::filesystem::directory_iterator(victim), {}) == 1);
}

TEST_CASE("a folder that was replaced while the log was written is not rotated into") {
  const OwnFolder folder;
  const auto victim = folder.path + "/victim";
  folder.listen("info");
  log::info(LogPart::kData, "first");
  log::flush(kPatience);
  std::filesystem::rename(folder.path + "/log", folder.path + "/moved");
  std::filesystem::create_directory(victim);
  std::filesystem::create_symlink(victim, folder.path + "/log");
  std::ofstream(victim + "/" + std::filesystem::path(folder.file()).filename().string()) << "weeks of work";
  const std::string text(1U << 20U, 'x');
  for (std::size_t i = 0; i * text.size() < 2 * log::kMostBytes; ++i) log::info(LogPart::kData, "{}", text);
  log::flush(kPatience);
  CHECK(std::distance(std::filesystem::directory_iterator(victim), {}) == 1);
  CHECK(*read_file(folder.file()) == "weeks of work");
}

TEST_CASE("lines of several threads are all there") {
  const OwnFolder folder;
  folder.listen("info");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int line = 0; line < 100; ++line) log::info(LogPart::kStore, "{} {}", i, line);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(folder.lines().size() == 400);
}

TEST_CASE("a wish that the environment has is refused with the variable's name") {
  REQUIRE(::setenv(kLogVariable, "loud", 1) == 0);
  auto opened = log::open_as_told("rank-0");
  ::unsetenv(kLogVariable);
  CHECK(opened.error().message == "TAAS_LOG: loud: not a level of the log: trace, debug, info, warning, error, off");
}

}  // namespace log_file_test
