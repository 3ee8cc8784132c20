#include "session/session_client.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <variant>

#include "base/exit_status.hpp"
#include "plan/decide_launch_mode.hpp"
#include "proc/spawn/signals.hpp"
#include "session/session_link.hpp"
#include "session/session_order.hpp"

namespace taas::cli {
namespace {

/// With one of them closed the launcher's next file would be its standard stream.
void open_standard_streams() {
  for (int stream = 0; stream < 3; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

sigset_t passed_on() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) ::sigaddset(&signals, signal);
  if (!is_ignored(SIGHUP)) ::sigaddset(&signals, SIGHUP);
  return signals;
}

void say(const std::string& name, const std::string& what) {
  std::fputs(fmt::format("taas-run: session {}: {}\n", name, what).c_str(), stderr);
}

/// Until the launcher's end. While the session has not begun with it, it may still refuse.
Result<std::optional<int>> stand_for_launcher(const FoundSession& session) {
  const auto signals = passed_on();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  const Fd pending(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!pending) return system_error("cannot wait for signals", errno);
  pollfd waited[] = {{session.socket.get(), POLLIN, 0}, {pending.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(waited, 2, -1) < 0) continue;
    if (waited[1].revents != 0) {
      signalfd_siginfo signal{};
      const auto count = ::read(pending.get(), &signal, sizeof signal);
      if (count == sizeof signal) (void)tell(session.socket, {"signal", static_cast<int>(signal.ssi_signo)});
    }
    if (waited[0].revents == 0) continue;
    const auto said = hear(session.socket);
    if (!said) {
      say(session.state.name, "it was killed, and the run with it");
      return std::optional(kFailedExitCode);
    }
    if (said->say == "ended") return std::optional(said->code);
    if (!said->text.empty()) say(session.state.name, said->text);
    if (said->say != "refused") continue;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return std::optional<int>();
  }
}

/// Else its agents on other machines look for sessions there. What is wrong with the options is said where they are
/// planned with.
Result<bool> has_ranks_here(const plan::Options& options, const plan::Machine& machine) {
  if (options.as_agent) return true;
  const auto mode = plan::decide_launch_mode(options, machine);
  if (!mode || std::holds_alternative<plan::OverSsh>(*mode)) return false;
  if (std::holds_alternative<plan::OneMachine>(*mode) || std::holds_alternative<plan::Join>(*mode)) return true;
  return usage_error("--in: only for ranks on this machine, or over ssh (--hosts)");
}

}  // namespace

Result<std::optional<int>> run_in_session(const plan::Options& options, const std::vector<std::string>& typed,
                                          const plan::Machine& machine) {
  const auto& name = options.session;
  auto here = has_ranks_here(options, machine);
  if (!here) return here.error();
  if (!*here) return std::optional<int>();
  auto session = find_session(name, machine.environment);
  if (!session && options.as_agent) return say(name, session.error().message), std::optional<int>();
  if (!session) return std::move(session).error().with("--in");
  if (session->build != build_of_this()) {
    (void)tell(session->socket, {"down"});
    say(name, "it is of another taas-run and has been ended; this run starts without it");
    return std::optional<int>();
  }
  open_standard_streams();
  const auto order = SessionOrder::of_this(typed);
  if (!order) return order.error();
  const auto file = order->write();
  if (!file) return file.error();
  if (auto told = tell(session->socket, {"run"}, {file->get(), 0, 1, 2}); !told) return told.error();
  return stand_for_launcher(*session);
}

}  // namespace taas::cli
