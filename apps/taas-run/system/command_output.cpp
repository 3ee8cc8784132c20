#include "system/command_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace taas::cli {
namespace {

Result<pid_t> start(std::vector<std::string> command, const Fd& output, Complaints complaints) {
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  if (complaints == Complaints::kDropped) {
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = -1;
  int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return system_error(command.front(), failed);
  return child;
}

bool readable(const Fd& pipe, Instant until) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_now()).count();
  pollfd wanted{pipe.get(), POLLIN, 0};
  return TEMP_FAILURE_RETRY(::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left, 0)))) > 0;
}

/// Whether the end came in time.
bool read_to_the_end(const Fd& pipe, Instant until, std::string& text) {
  std::array<char, 4096> buffer{};
  while (readable(pipe, until)) {
    auto count = TEMP_FAILURE_RETRY(::read(pipe.get(), buffer.data(), buffer.size()));
    if (count <= 0) return count == 0;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return false;
}

}  // namespace

Result<CommandEnd> run_command(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                               Complaints complaints) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto child = start(command, pipe->write, complaints);
  if (!child) return child.error();
  pipe->write.reset();
  std::string text;
  bool whole = read_to_the_end(pipe->read, steady_now() + patience, text);
  if (!whole) ::kill(*child, SIGKILL);
  int status = 0;
  bool ended = TEMP_FAILURE_RETRY(::waitpid(*child, &status, 0)) == *child;
  if (!whole || !ended) return unavailable_error(fmt::format("{} did not answer", command.front()));
  return CommandEnd{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), std::move(text)};
}

Result<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                              Complaints complaints) {
  auto end = run_command(command, patience, complaints);
  if (!end) return end.error();
  if (end->exit_code != 0) return unavailable_error(fmt::format("{} failed", command.front()));
  return std::move(end->output);
}

}  // namespace taas::cli
