#pragma once

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "proc/processes.hpp"
#include "proc/spawn/python.hpp"

// Interpreters for the tests of what is read out of one: those that TAAS_PYTHONS names, separated by colons, or else
// python3 in PATH.

namespace taas::test {

inline std::vector<std::string> interpreters() {
  const auto environment = current_environment();
  std::vector<std::string> found;
  if (auto named = find_variable(environment, "TAAS_PYTHONS"); named && !named->empty()) {
    for (auto path : split(*named, ':')) found.emplace_back(path);
  } else if (auto path = find_in_path("python3", find_variable(environment, "PATH").value_or("")); !path.empty()) {
    found.push_back(path);
  }
  return found;
}

/// A program that talks in lines, and is killed with this object.
class Talk {
 public:
  explicit Talk(std::vector<std::string> argv) {
    SpawnRequest request;
    request.argv = std::move(argv);
    request.environment = current_environment();
    request.environment.emplace_back("PYTHONUTF8=1");
    request.environment.emplace_back("PYTHONDONTWRITEBYTECODE=1");
    auto in = make_pipe().value();
    auto out = make_pipe().value();
    request.standard_input = &in.read;
    request.standard_output = &out.write;
    child_ = spawn(request).value();
    in_ = std::move(in.write);
    out_ = std::move(out.read);
  }
  ~Talk() { kill(); }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  [[nodiscard]] int pid() const { return child_.pid; }
  void say(const std::string& line) const { REQUIRE(write_all(in_, line + "\n").has_value()); }
  [[nodiscard]] std::string hear() const { return read_line(out_); }
  void end_input() { in_.reset(); }
  /// The process is left unreaped.
  void signal(int number) const { ::kill(child_.pid, number); }
  void kill() {
    if (child_.pid < 0) return;
    ::kill(child_.pid, SIGKILL);
    ::waitpid(child_.pid, nullptr, 0);
    child_.pid = -1;
  }

 private:
  Child child_;
  Fd in_;
  Fd out_;
};

}  // namespace taas::test
