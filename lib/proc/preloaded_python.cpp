#include "proc/preloaded_python.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.hpp"
#include "proc/family.hpp"
#include "proc/landlock.hpp"
#include "proc/message_socket.hpp"
#include "proc/python.hpp"
#include "proc/spawn_failure.hpp"

namespace taas {
namespace {

/// For one step of one rank's start: forking takes milliseconds, and the event loop waits meanwhile.
constexpr std::chrono::seconds kPatience{5};
constexpr const char* kVariable = "TAAS_PRELOAD";
constexpr std::string_view kReady = "ready";
constexpr std::string_view kRefused = "refused ";
constexpr std::string_view kStarted = "started ";
constexpr std::string_view kReleased = "released";
/// What the interpreter executes where the hook is passed by.
constexpr const char* kNoHook =
    "import os; os.write(3, b'refused this interpreter does not import sitecustomize from PYTHONPATH')";

std::vector<std::string> probing_command(const PreloadRequest& request) {
  auto words = request.command;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(request.options), {"-c", kNoHook});
  return words;
}

std::vector<std::string> hooked_environment(const PreloadRequest& request) {
  std::vector<std::string> variables;
  for (const auto& variable : request.environment) {
    if (!variable.starts_with("PYTHONPATH=")) variables.push_back(variable);
  }
  auto path = find_variable(request.environment, "PYTHONPATH").value_or("");
  variables.push_back(fmt::format("PYTHONPATH={}{}{}", request.hook_folder, path.empty() ? "" : ":", path));
  variables.push_back(fmt::format("{}=probe\n{}\n{}\n{}\n{}", kVariable, request.options, ::getpid(),
                                  fmt::join(request.modules, ","), fmt::join(request.per_rank, ",")));
  return variables;
}

Result<Fd> open_null() {
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return system_error("cannot open /dev/null", errno);
  return null;
}

/// The words of a rank, for taas_preload/server.py.
Result<Fd> write_words(const SpawnRequest& request) {
  std::string text = std::to_string(request.argv.size());
  text.push_back('\0');
  auto add = [&text](const std::string& word) { text.append(word).push_back('\0'); };
  for (const auto& word : request.argv) add(word);
  add(request.working_directory.value_or(""));
  for (const auto& variable : request.environment) add(variable);
  Fd file(::memfd_create("taas-rank", MFD_CLOEXEC));
  if (!file) return system_error("cannot make a file in memory", errno);
  if (auto written = write_all(file, text); !written) return written.error();
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

int number_or(const Fd* given, int own) { return given == nullptr ? own : given->get(); }

/// The interpreter is not trusted: only what has become our child is one of its.
bool is_own_child(int pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

Result<int> read_pid(const std::string& answer) {
  int pid = 0;
  if (answer.starts_with(kStarted))
    std::from_chars(answer.data() + kStarted.size(), answer.data() + answer.size(), pid);
  if (pid <= 0) return protocol_error("the preloaded Python made no process");
  return pid;
}

/// A process that was forked and waits for the word.
struct Born {
  int pid = -1;
  Fd control;
};

void discard_all(std::span<const Born> waiting) {
  for (const auto& born : waiting) discard_child(born.pid);
}

/// Lets the process go on, and waits until it runs the program or says what is in the way.
Result<> let_go(const Fd& control, const SpawnRequest& request) {
  if (auto told = send_message(control, "g", {}, kPatience); !told) return told;
  auto answer = receive_message(control, kPatience);
  if (!answer) return answer.error();
  if (answer->empty()) return {};
  SpawnFailure failure;
  if (answer->size() != sizeof failure) return protocol_error("the preloaded Python answered garbage");
  std::memcpy(&failure, answer->data(), sizeof failure);
  return describe(failure, request, request.argv.front());
}

Result<Child> begin(Born born, const SpawnRequest& request) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, born.pid, 0)));
  Result<> gone_on = pidfd ? let_go(born.control, request) : system_error("cannot watch a rank", errno);
  if (gone_on) return Child{born.pid, std::move(pidfd), true};
  discard_child(born.pid);
  return gone_on.error();
}

}  // namespace

struct PreloadedPython::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, Family& given, OnSettled settled, Fd socket)
      : family(given), on_settled(std::move(settled)), link(std::move(socket)), watched(io, ::dup(link.get())) {}

  /// Its first message, or its end.
  void await_word() {
    watched.async_wait(watched.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped) self->hear();
    });
  }

  void hear() {
    auto word = receive_message(link, kPatience);
    if (word && *word == kReady) return settle("");
    if (word && word->starts_with(kRefused)) return settle(word->substr(kRefused.size()));
    settle("the preloading Python ended before it was ready");
  }

  void settle(const std::string& refusal) {
    ready = refusal.empty();
    if (!ready) end();
    if (auto tell = std::exchange(on_settled, nullptr)) tell(refusal);
  }

  void ended() {
    family.unspare(pid);
    pid = -1;
    ready = false;
  }

  void end() {
    ready = false;
    link.reset();
    watched.close();
    if (pid > 0) ::kill(pid, SIGKILL);  // not reaped yet: still its number
  }

  Result<std::vector<Born>> fork_all(std::span<const SpawnRequest> requests);
  Result<Born> fork(const SpawnRequest& request);
  Result<> release(std::span<const Born> born);

  Family& family;
  OnSettled on_settled;
  Fd link;
  boost::asio::posix::stream_descriptor watched;  // a duplicate of `link`
  int pid = -1;
  bool ready = false;
};

Result<Born> PreloadedPython::State::fork(const SpawnRequest& request) {
  auto sockets = make_message_sockets();
  if (!sockets) return sockets.error();
  auto words = write_words(request);
  if (!words) return words.error();
  std::vector<int> descriptors{words->get(), sockets->second.get(), number_or(request.standard_input, 0),
                               number_or(request.standard_output, 1), number_or(request.standard_error, 2)};
  if (request.read_only != nullptr) descriptors.push_back(request.read_only->descriptor());
  if (auto sent = send_message(link, "rank", descriptors, kPatience); !sent) return sent.error();
  auto answer = receive_message(link, kPatience);
  if (!answer) return answer.error();
  auto number = read_pid(*answer);
  if (!number) return number.error();
  return Born{*number, std::move(sockets->first)};
}

/// What waits is not our child yet: left alone it ends, since the other end of its socket is gone.
Result<std::vector<Born>> PreloadedPython::State::fork_all(std::span<const SpawnRequest> requests) {
  std::vector<Born> all;
  for (const auto& request : requests) {
    auto born = fork(request);
    if (!born) return born.error();
    all.push_back(std::move(*born));
  }
  if (auto released = release(all); !released) return released.error();
  return all;
}

Result<> PreloadedPython::State::release(std::span<const Born> born) {
  if (auto sent = send_message(link, "release", {}, kPatience); !sent) return sent;
  auto answer = receive_message(link, kPatience);
  if (!answer) return answer.error();
  bool ours = std::all_of(born.begin(), born.end(), [](const Born& one) { return is_own_child(one.pid); });
  if (*answer == kReleased && ours) return {};
  return protocol_error("the preloaded Python gave its processes not away");
}

PreloadedPython::PreloadedPython(std::shared_ptr<State> state) : state_(std::move(state)) {}

PreloadedPython::~PreloadedPython() {
  state_->on_settled = nullptr;
  state_->end();
}

bool PreloadedPython::usable() const { return state_->ready; }

Result<> PreloadedPython::spawn(std::span<const SpawnRequest> requests,
                                const std::function<void(std::size_t, Result<Child>)>& hand_over) {
  auto born = state_->fork_all(requests);
  if (!born) {
    state_->end();
    return born.error();
  }
  for (std::size_t i = 0; i < born->size(); ++i) {
    auto child = begin(std::move((*born)[i]), requests[i]);
    const bool failed = !child;
    hand_over(i, std::move(child));
    if (!failed) continue;
    discard_all(std::span(*born).subspan(i + 1));
    break;
  }
  return {};
}

Result<std::unique_ptr<PreloadedPython>> PreloadedPython::start(boost::asio::io_context& io, Family& family,
                                                                const PreloadRequest& request, OnSettled on_settled) {
  auto sockets = make_message_sockets();
  if (!sockets) return sockets.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  auto null = open_null();
  if (!null) return null.error();
  SpawnRequest wanted;
  wanted.argv = probing_command(request);
  wanted.environment = hooked_environment(request);
  wanted.standard_input = &*null;
  wanted.standard_output = &out->write;
  wanted.standard_error = &err->write;
  wanted.inherited = {&sockets->second, &out->read, &err->read};
  wanted.open_files_limit = request.open_files_limit;
  auto child = taas::spawn(wanted);
  if (!child) return child.error();
  auto state = std::make_shared<State>(io, family, std::move(on_settled), std::move(sockets->first));
  state->pid = child->pid;
  family.spare(child->pid);
  family.watch(std::move(*child), [state](ExitStatus, Instant) { state->ended(); });
  state->await_word();
  return std::unique_ptr<PreloadedPython>(new PreloadedPython(std::move(state)));
}

}  // namespace taas
