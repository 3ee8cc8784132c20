#include "requeue.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "plan/slurm_preemption.hpp"

namespace taas::cli {
namespace {

Result<pid_t> start(std::vector<std::string> command, const Fd& output) {
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  pid_t child = -1;
  int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return system_error(command.front(), failed);
  return child;
}

std::string read_to_the_end(const Fd& pipe) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count; (count = TEMP_FAILURE_RETRY(::read(pipe.get(), buffer.data(), buffer.size()))) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// What a command prints. What goes wrong in it, it says itself on stderr.
Result<std::string> output_of(const std::vector<std::string>& command) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto child = start(command, pipe->write);
  if (!child) return child.error();
  pipe->write.reset();
  auto text = read_to_the_end(pipe->read);
  int status = 0;
  if (::waitpid(*child, &status, 0) == *child && status == 0) return text;
  return unavailable_error(fmt::format("{} failed", command.front()));
}

/// Empty when there is no answer.
std::string answer(const std::vector<std::string>& command) {
  auto text = output_of(command);
  return text ? std::move(*text) : std::string();
}

/// A job that is preempted would run twice: SLURM from 24.05 on puts it back into the queue when its script ends, and
/// again at the end of the next start if it was put back by scontrol in between.
bool slurm_requeues(std::string job) {
  plan::SlurmAnswers answers;
  answers.job = std::move(job);
  if (answers.job.empty()) return false;
  std::string partition(plan::scontrol_value(answers.job, "Partition"));
  answers.partition = answer({"scontrol", "show", "partition", "--oneliner", partition});
  answers.version = answer({"scontrol", "--version"});
  return plan::slurm_requeues(answers);
}

}  // namespace

void requeue(const std::string& job_id) {
  std::string job(plan::scontrol_job(answer({"scontrol", "show", "job", "--oneliner", job_id}), job_id));
  if (plan::is_cancelled(job) || slurm_requeues(job)) return;
  if (auto done = output_of({"scontrol", "requeue", job_id}); !done) {
    fmt::print(stderr, "taas-run: job {} could not be put back into the queue: {}\n", job_id, done.error().message);
  }
}

}  // namespace taas::cli
