#include "proc/spawn/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "proc/processes.hpp"
#include "proc/spawn/child_descriptors.hpp"

namespace spawn_test {

using namespace taas;
using namespace taas::test;

namespace {

std::string write_program(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
  return path;
}

int errno_of(std::vector<std::string> argv) {
  SpawnRequest request;
  request.argv = std::move(argv);
  request.environment = current_environment();
  auto child = spawn(request);
  REQUIRE_FALSE(child.has_value());
  CHECK_THAT(child.error().message, ContainsSubstring(request.argv.empty() ? "program" : request.argv[0]));
  return child.error().system_errno;
}

int own_oom_score() { return std::stoi(read_file("/proc/self/oom_score_adj").value()); }

bool no_children() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

unsigned long long mask_in(const std::string& status, const std::string& field) {
  auto at = status.find(field + ":\t");
  REQUIRE(at != status.npos);
  return std::stoull(status.substr(at + field.size() + 2, 16), nullptr, 16);
}

}  // namespace

TEST_CASE("a program gets its arguments, environment and folder as they were given") {
  TemporaryFolder folder;
  auto request = shell("printf '%s|%s|%s|%s' \"$0\" \"$1\" \"$ONLY\" \"$PWD\"");
  request.argv.insert(request.argv.end(), {"zero", "one two"});
  request.environment = {"ONLY=this"};
  request.working_directory = folder.path();
  CHECK(output_of(std::move(request)) == "zero|one two|this|" + folder.path());
}

TEST_CASE("a name without a slash is searched in the PATH of the new environment") {
  TemporaryFolder folder;
  write_program(folder / "tool", "#!/bin/sh\necho found $0", 0755);
  SpawnRequest request;
  request.argv = {"tool"};
  request.environment = {"PATH=/nowhere:" + folder.path()};
  CHECK(output_of(std::move(request)) == "found " + folder / "tool" + "\n");
}

TEST_CASE("exec failures come back with their errno and leave no process") {
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {  // what other tests have left
  }
  TemporaryFolder folder;
  CHECK(errno_of({folder / "missing"}) == ENOENT);
  CHECK(errno_of({"no-such-command-anywhere"}) == ENOENT);
  CHECK(errno_of({write_program(folder / "plain", "#!/bin/sh\n", 0644)}) == EACCES);
  CHECK(errno_of({write_program(folder / "garbage", "\x01\x02garbage", 0755)}) == ENOEXEC);
  CHECK(errno_of({folder.path()}) == EACCES);
  CHECK(errno_of({}) == 0);
  CHECK(no_children());
}

TEST_CASE("a missing interpreter is told apart from a missing program") {
  TemporaryFolder folder;
  SpawnRequest request;
  request.argv = {write_program(folder / "script", "#!/no/such/interpreter\n", 0755)};
  auto child = spawn(request);
  REQUIRE_FALSE(child.has_value());
  CHECK(child.error().system_errno == ENOENT);
  CHECK_THAT(child.error().message, ContainsSubstring("interpreter"));
}

TEST_CASE("a missing working folder is named") {
  auto request = shell("true");
  request.working_directory = "/no/such/folder";
  auto child = spawn(request);
  REQUIRE_FALSE(child.has_value());
  CHECK(child.error().system_errno == ENOENT);
  CHECK_THAT(child.error().message, ContainsSubstring("/no/such/folder"));
}

TEST_CASE("a process leads its own session and process group") {
  auto request = shell("cut -d' ' -f1,5,6 /proc/$$/stat");
  auto text = output_of(std::move(request));
  auto pid = text.substr(0, text.find(' '));
  CHECK(text == pid + " " + pid + " " + pid + "\n");
  CHECK(std::stoi(pid) != ::getsid(0));
}

TEST_CASE("signals blocked or ignored by the launcher are neither in the process") {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
  auto hangup_before = ::signal(SIGHUP, SIG_DFL);
  SpawnRequest request;
  request.argv = {"/bin/cat", "/proc/self/status"};
  auto plain = output_of(request);
  ::signal(SIGHUP, SIG_IGN);
  auto under_nohup = output_of(request);
  ::signal(SIGHUP, hangup_before);
  ::signal(SIGPIPE, pipe_before);
  sigset_t now;
  ::sigprocmask(SIG_SETMASK, &before, &now);
  CHECK(::sigismember(&now, SIGUSR2) == 1);
  CHECK(mask_in(plain, "SigBlk") == 0);
  CHECK(mask_in(plain, "SigIgn") == 0);
  CHECK(mask_in(under_nohup, "SigIgn") == 1ULL << (SIGHUP - 1));
}

TEST_CASE("only the standard streams are inherited, whatever the launcher has open") {
  int leaked = ::open("/dev/null", O_RDONLY);  // not close-on-exec, as a shell may leave it to the launcher
  REQUIRE(leaked >= 3);
  int far_away = ::fcntl(leaked, F_DUPFD, 200);
  SpawnRequest request;
  request.argv = {"/bin/ls", "/proc/self/fd"};
  CHECK(output_of(std::move(request)) == "0\n1\n2\n3\n");  // 3 is the folder that ls reads
  ::close(leaked);
  ::close(far_away);
}

TEST_CASE("a process does not copy what the launcher has open for others") {
  reserve_child_descriptors();
  std::vector<Fd> others;
  for (int i = 0; i < 600; ++i) others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(others.back());
  auto pipe = make_pipe();  // has large numbers
  REQUIRE(pipe.has_value());
  auto request = shell("grep FDSize /proc/$$/status; echo to 3 >&3");
  request.inherited = {&pipe->write};
  auto said = output_of(std::move(request));  // the kernel's table is as large as the largest number was
  CHECK(std::stoi(said.substr(said.find('\t'))) <= 256);
  pipe->write.reset();
  CHECK(read_to_end(pipe->read) == "to 3\n");
}

TEST_CASE("more descriptors may be inherited than are held in reserve") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto request = shell("echo to 22 >&22");
  request.argv[0] = "/bin/bash";
  request.inherited.assign(20, &pipe->write);
  output_of(std::move(request));
  pipe->write.reset();
  CHECK(read_to_end(pipe->read) == "to 22\n");
}

TEST_CASE("descriptors that a program is to inherit become 3, 4 and so on, whatever they were") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  Fd first(::fcntl(pipe->write.get(), F_DUPFD_CLOEXEC, 3));
  Fd second(::fcntl(pipe->write.get(), F_DUPFD_CLOEXEC, 100));
  auto request = shell("echo to 3 >&3; echo to 4 >&4; ls /proc/$$/fd | tr '\n' ' '");
  request.inherited = {&first, &second};
  CHECK(output_of(std::move(request)).substr(0, 10) == "0 1 2 3 4 ");
  char text[32] = {};
  REQUIRE(::read(pipe->read.get(), text, sizeof text - 1) == 10);
  CHECK(std::string(text) == "to 3\nto 4\n");
}

TEST_CASE("stdin, stdout and stderr go where they are sent") {
  auto input = make_pipe();
  auto errors = make_pipe();
  REQUIRE(input.has_value());
  REQUIRE(errors.has_value());
  auto request = shell("read line; echo out $line; echo err $line >&2");
  request.standard_input = &input->read;
  request.standard_error = &errors->write;
  REQUIRE(write_all(input->write, "hello\n").has_value());
  CHECK(output_of(std::move(request)) == "out hello\n");
  errors->write.reset();
  CHECK(read_to_end(errors->read) == "err hello\n");
}

TEST_CASE("streams may be crossed with the launcher's own") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  Fd saved_out(::fcntl(1, F_DUPFD_CLOEXEC, 3)), saved_err(::fcntl(2, F_DUPFD_CLOEXEC, 3));
  ::dup2(pipe->write.get(), 1);
  Fd one(1), two(2);
  auto request = shell("echo to-stdout; echo to-stderr >&2");
  request.standard_output = &two;
  request.standard_error = &one;
  auto child = spawn(request);
  ::dup2(saved_out.get(), one.release());
  ::dup2(saved_err.get(), two.release());
  REQUIRE(child.has_value());
  CHECK(wait_for_exit(std::move(*child)).success());
  pipe->write.reset();
  CHECK(read_to_end(pipe->read) == "to-stderr\n");
}

TEST_CASE("the kernel kills a process whose launcher is gone") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto launcher = ::fork();
  if (launcher == 0) {
    auto request = shell("echo $$; exec sleep 1000");
    request.standard_output = &pipe->write;
    auto child = spawn(request);
    ::pause();
    ::_exit(child ? 0 : 1);
  }
  pipe->write.reset();
  auto pid = std::stoi(read_line(pipe->read));
  CHECK(::kill(pid, 0) == 0);
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  CHECK(read_to_end(pipe->read).empty());  // returns when the process no longer holds the pipe
}

TEST_CASE("the kernel takes a process before its launcher when memory runs out") {
  const int own = own_oom_score();
  CHECK(output_of(shell("cat /proc/self/oom_score_adj")) == fmt::format("{}\n", std::min(1000, own + 100)));
  CHECK(own_oom_score() == own);  // the child has its memory until exec, but a score of its own
  auto like_launcher = shell("cat /proc/self/oom_score_adj");
  like_launcher.when_memory_runs_out = WhenMemoryRunsOut::kLikeLauncher;
  CHECK(output_of(std::move(like_launcher)) == fmt::format("{}\n", own));
  std::ofstream("/proc/self/oom_score_adj") << 950;
  CHECK(output_of(shell("cat /proc/self/oom_score_adj")) == "1000\n");
  std::ofstream("/proc/self/oom_score_adj") << own;
  CHECK(own_oom_score() == own);
}

TEST_CASE("the open-files limit is the one asked for") {
  auto request = shell("ulimit -Sn");
  request.open_files_limit = 77;
  CHECK(output_of(std::move(request)) == "77\n");
}

}  // namespace spawn_test
