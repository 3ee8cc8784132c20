#include "proc/family/keeper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "proc/family/family.hpp"
#include "proc/processes.hpp"
#include "proc/spawn/signals.hpp"

namespace keeper_test {

using namespace taas;
using namespace taas::test;

namespace {

/// What the agent under test has at hand.
struct Agent {
  explicit Agent(const Fd& held) : report(held) {}
  boost::asio::io_context io;
  Family family{io};
  const Fd& report;  ///< agent and ranks hold it while they live

  void say(const std::string& line) const {
    if (!write_all(report, line + "\n")) ::_exit(99);
  }
  void start(const std::string& script) {
    auto request = shell(script);
    request.standard_output = &report;
    auto child = spawn(request);
    if (!child) ::_exit(98);
    family.watch(std::move(*child), [](ExitStatus, Instant) {});
  }
};

/// A small launcher in a process of its own: keeper and agent. The agent reports "agent PID", then does `body`.
struct Launcher {
  explicit Launcher(const std::function<void(Agent&)>& body) {
    auto messages = make_pipe();
    REQUIRE(messages.has_value());
    auto report = folder / "report";
    REQUIRE(::mkfifo(report.c_str(), 0600) == 0);
    alive = Fd(::open(report.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    keeper = ::fork();
    if (keeper == 0) run(body, report, *messages);
    errors = std::move(messages->read);
    REQUIRE(wait_for_input());
    ::fcntl(alive.get(), F_SETFL, 0);
    auto line = read_line(alive);
    REQUIRE(line.starts_with("agent "));
    agent = std::stoi(line.substr(6));
  }
  /// Orphans of a launcher whose halves are both dead come to this process.
  ~Launcher() { kill_and_reap_descendants(std::chrono::seconds(20)); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  [[noreturn]] static void run(const std::function<void(Agent&)>& body, const std::string& report, Pipe& messages) {
    ::dup2(messages.write.get(), 2);
    messages = {};
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_DFL);  // the test framework has handlers
    auto lifeline = become_kept();
    if (!lifeline) ::_exit(97);
    Fd kept(
        ::open(report.c_str(), O_WRONLY | O_CLOEXEC));  // by the agent alone: the end of the file is everybody's end
    Agent agent(kept);
    lifeline->on_keeper_death(agent.io, [&] { agent.family.sweep(SIGKILL, [] { ::_exit(0); }); });
    agent.say("agent " + std::to_string(::getpid()));
    body(agent);
    agent.io.run();
    ::_exit(96);
  }

  std::string next_line() const { return read_line(alive); }

  /// Waits until there is something to read, or nobody left to write it; not longer than 20 seconds.
  bool wait_for_input() const {
    pollfd end{.fd = alive.get(), .events = POLLIN, .revents = 0};
    return ::poll(&end, 1, 20'000) == 1;
  }

  /// Waits for the end of every process of the run, which must have nothing more to say.
  bool all_gone() const { return wait_for_input() && read_to_end(alive).empty(); }

  int keeper_status() const {
    int status = 0;
    REQUIRE(::waitpid(keeper, &status, 0) == keeper);
    return status;
  }

  TemporaryFolder folder;
  pid_t keeper = 0;
  pid_t agent = 0;
  Fd alive;
  Fd errors;
};

/// A rank, its child, and a grandchild in a session of its own that was forked twice.
constexpr auto kRank =
    "(sh -c 'echo child; exec sleep 1000') & setsid sh -c '(sh -c \"echo grandchild; exec sleep 1000\" &)' & "
    "echo rank; wait; exec sleep 1000";

void start_ranks(Agent& agent) {
  agent.start(kRank);
  agent.start(kRank);
}

void wait_for_ranks(const Launcher& launcher) {
  for (int i = 0; i < 6; ++i) REQUIRE_FALSE(launcher.next_line().empty());
}

}  // namespace

TEST_CASE("the keeper ends with the agent's exit code") {
  for (int code : {0, 1, 42, 255}) {
    Launcher launcher([code](Agent&) { ::_exit(code); });
    auto status = launcher.keeper_status();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == code);
    CHECK(read_to_end(launcher.errors).empty());
  }
}

TEST_CASE("an agent's table of descriptors has room for many ranks before there are threads") {
  auto room = [] {
    auto status = read_file("/proc/self/status").value();
    auto name = status.find("FDSize:");
    return name == std::string::npos ? 0 : std::stoi(status.substr(name + 7));
  };
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const auto least = std::min<rlim_t>(limit.rlim_cur, 1024);
  Launcher launcher([&](Agent&) { ::_exit(static_cast<rlim_t>(room()) >= least ? 0 : 1); });
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 0);
}

TEST_CASE("kill -9 of the keeper: nothing is left") {
  Launcher launcher(start_ranks);
  wait_for_ranks(launcher);
  ::kill(launcher.keeper, SIGKILL);
  CHECK(WTERMSIG(launcher.keeper_status()) == SIGKILL);
  CHECK(launcher.all_gone());
}

TEST_CASE("kill -9 of the agent: nothing is left, and the keeper says so") {
  Launcher launcher(start_ranks);
  wait_for_ranks(launcher);
  ::kill(launcher.agent, SIGKILL);
  auto status = launcher.keeper_status();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
  CHECK(launcher.all_gone());
  CHECK_THAT(read_to_end(launcher.errors), ContainsSubstring("killed by signal 9"));
}

TEST_CASE("an agent that was told to stop is not said to be killed") {
  Launcher launcher(start_ranks);
  wait_for_ranks(launcher);
  ::kill(launcher.agent, SIGTERM);
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 128 + SIGTERM);
  CHECK(read_to_end(launcher.errors) == "taas-run: stopped by signal 15 (Terminated)\n");
}

TEST_CASE("kill -9 of both at once: the ranks are gone") {
  Launcher launcher([](Agent& agent) {
    agent.start("echo rank; exec sleep 1000");
    agent.start("echo rank; exec sleep 1000");
  });
  REQUIRE(launcher.next_line() == "rank");
  REQUIRE(launcher.next_line() == "rank");
  ::kill(launcher.keeper, SIGSTOP);  // so that neither half sees the other's end
  ::kill(launcher.agent, SIGKILL);
  ::kill(launcher.keeper, SIGKILL);
  CHECK(launcher.all_gone());
}

TEST_CASE("an agent that ends leaves nothing, whatever it forgot") {
  Launcher launcher([](Agent& agent) {
    agent.start(std::string(kRank));
    agent.family.watch(*spawn(shell("exit 0")), [](ExitStatus, Instant) { ::_exit(7); });
  });
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 7);
  read_to_end(launcher.alive);  // returns when nobody is left to write
}

TEST_CASE("signals are passed on to the agent, each once") {
  Launcher launcher([](Agent& agent) {
    auto source = std::make_shared<std::unique_ptr<SignalSource>>();
    *source = std::make_unique<SignalSource>(
        agent.io, std::vector<int>{SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH, SIGCONT},
        [&agent, source](int signal, Instant, int) { agent.say("signal " + std::to_string(signal)); });
    agent.say("ready");
  });
  REQUIRE(launcher.next_line() == "ready");
  for (int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH, SIGCONT, SIGINT}) {
    ::kill(launcher.keeper, signal);
    CHECK(launcher.next_line() == "signal " + std::to_string(signal));
  }
  ::kill(launcher.agent, SIGKILL);
  launcher.keeper_status();
}

TEST_CASE("the agent leads its own process group, so that Ctrl-C reaches it through the keeper alone") {
  Launcher launcher([](Agent& agent) { agent.say(std::to_string(::getpgrp() == ::getpid())); });
  CHECK(launcher.next_line() == "1");
  CHECK(::getpgid(launcher.agent) == launcher.agent);
  CHECK(::getpgid(launcher.keeper) == ::getpgrp());
  ::kill(launcher.agent, SIGKILL);
  launcher.keeper_status();
}

TEST_CASE("a stopped agent is continued when it is told to end") {
  Launcher launcher([](Agent& agent) {
    auto source = std::make_shared<std::unique_ptr<SignalSource>>();
    *source = std::make_unique<SignalSource>(agent.io, std::vector<int>{SIGTERM},
                                             [source](int, Instant, int) { ::_exit(7); });
    agent.say("ready");
  });
  REQUIRE(launcher.next_line() == "ready");
  ::kill(launcher.agent, SIGSTOP);
  ::kill(launcher.keeper, SIGTERM);
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 7);
}

TEST_CASE("an agent that does not answer when it is told to end is killed with all that it has started") {
  Launcher launcher([](Agent& agent) {
    start_ranks(agent);
    agent.io.poll();
    ::signal(SIGTERM, SIG_IGN);
    for (;;) ::pause();  // its loop turns no more, as that of one that is traced or waits for a device
  });
  wait_for_ranks(launcher);
  ::kill(launcher.keeper, SIGTERM);
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 128 + SIGKILL);
  CHECK(launcher.all_gone());
  CHECK_THAT(read_to_end(launcher.errors), ContainsSubstring("has not answered for 10 s"));
}

TEST_CASE("an agent that answers has all the time that it needs to end") {
  Launcher launcher([](Agent& agent) {
    auto source = std::make_shared<std::unique_ptr<SignalSource>>();
    auto timer = std::make_shared<boost::asio::steady_timer>(agent.io);
    *source = std::make_unique<SignalSource>(agent.io, std::vector<int>{SIGTERM}, [source, timer](int, Instant, int) {
      timer->expires_after(std::chrono::seconds(12));
      timer->async_wait([](boost::system::error_code) { ::_exit(7); });
    });
    agent.say("ready");
  });
  REQUIRE(launcher.next_line() == "ready");
  ::kill(launcher.keeper, SIGTERM);
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 7);
}

TEST_CASE("an agent that a passed-on signal kills is no news") {
  Launcher launcher([](Agent& agent) { agent.say("ready"); });
  REQUIRE(launcher.next_line() == "ready");
  ::kill(launcher.keeper, SIGTERM);
  CHECK(WEXITSTATUS(launcher.keeper_status()) == 128 + SIGTERM);
  CHECK(read_to_end(launcher.errors).empty());
}

}  // namespace keeper_test
