#include "proc/preload/fork_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.hpp"
#include "proc/family/family.hpp"
#include "proc/spawn/child_watch.hpp"
#include "proc/spawn/landlock.hpp"
#include "proc/spawn/message_socket.hpp"
#include "proc/spawn/spawn_failure.hpp"

namespace taas {
namespace {

/// For one step of one rank's start. Forking takes milliseconds: only an interpreter that hangs takes so long.
constexpr std::chrono::seconds kPatience{10};
/// What is read has been announced, and what is written has room: at most one order is on its way.
constexpr std::chrono::milliseconds kNow{0};
constexpr std::string_view kStarted = "started ";
constexpr std::string_view kReleased = "released";

/// The words of a rank, for server.py.
Result<Fd> write_words(const SpawnRequest& request) {
  std::string text = std::to_string(request.argv.size());
  text.push_back('\0');
  auto add = [&text](const std::string& word) { text.append(word).push_back('\0'); };
  for (const auto& word : request.argv) add(word);
  add(request.working_directory.value_or(""));
  add(fmt::format("{}", fmt::join(request.processors, ",")));
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

/// A process closes its end when it runs the program, and before that says what is in the way.
Result<> read_failure(const std::string& answer, const SpawnRequest& request) {
  if (answer.empty()) return {};
  SpawnFailure failure;
  if (answer.size() != sizeof failure) return protocol_error("the preloaded Python answered garbage");
  std::memcpy(&failure, answer.data(), sizeof failure);
  return describe(failure, request, request.argv.front());
}

}  // namespace

ForkRequest::ForkRequest(PreloadedLink link, std::vector<SpawnRequest> requests, OnChild on_child, OnEnd on_end)
    : link_(link),
      requests_(std::move(requests)),
      on_child_(std::move(on_child)),
      on_end_(std::move(on_end)),
      patience_(link.io) {}

void ForkRequest::ask() {
  const bool enough = born_.size() == requests_.size();
  if (enough) phase_ = Phase::kReleasing;
  auto asked = enough ? send_message(link_.socket, "release", {}, kNow) : ask_for(requests_[born_.size()]);
  if (!asked) return end(asked);
  await(link_.watched, &ForkRequest::hear);
}

Result<> ForkRequest::ask_for(const SpawnRequest& request) {
  auto sockets = make_message_sockets();
  if (!sockets) return sockets.error();
  auto words = write_words(request);
  if (!words) return words.error();
  std::vector<int> descriptors{words->get(), sockets->second.get(), number_or(request.standard_input, 0),
                               number_or(request.standard_output, 1), number_or(request.standard_error, 2)};
  if (request.read_only != nullptr) descriptors.push_back(request.read_only->descriptor());
  control_ = std::move(sockets->first);
  return send_message(link_.socket, "rank", descriptors, kNow);
}

void ForkRequest::hear() {
  auto answer = receive_message(link_.socket, kNow);
  if (!answer) return end(answer.error());
  if (phase_ == Phase::kReleasing) {
    return *answer == kReleased ? released() : end(protocol_error("the preloaded Python gave its processes not away"));
  }
  auto pid = read_pid(*answer);
  if (!pid) return end(pid.error());
  born_.push_back({*pid, std::move(control_), Fd()});
  ask();
}

void ForkRequest::released() {
  phase_ = Phase::kLettingGo;
  for (auto& born : born_) {
    if (auto claimed = claim(born); !claimed) return end(claimed);
  }
  let_go();
}

/// Until it is handed over nobody else signals or reaps it.
Result<> ForkRequest::claim(Born& born) {
  if (!is_own_child(born.pid)) return protocol_error("the preloaded Python gave its processes not away");
  auto end = watch_child(born.pid);
  if (!end) return end.error();
  born.end = std::move(*end);
  link_.family.spare(born.pid);
  return {};
}

/// One after the other: whoever gets them sees them end in the order in which they do.
void ForkRequest::let_go() {
  if (next_ == born_.size()) return end({});
  const auto& control = born_[next_].control;
  if (auto told = send_message(control, "g", {}, kNow); !told) return hand_over(told);
  answer_.emplace(link_.io, ::dup(control.get()));
  await(*answer_, &ForkRequest::hear_rank);
}

void ForkRequest::hear_rank() {
  auto answer = receive_message(born_[next_].control, kNow);
  hand_over(answer ? read_failure(*answer, requests_[next_]) : Result<>(answer.error()));
}

void ForkRequest::hand_over(const Result<>& gone_on) {
  auto self = shared_from_this();  // the callback may let go of this
  answer_.reset();
  auto number = next_++;
  auto born = std::move(born_[number]);
  link_.family.unspare(born.pid);
  if (gone_on) {
    on_child_(number, Child{born.pid, std::move(born.end), true});
    if (phase_ == Phase::kLettingGo) let_go();
    return;
  }
  discard_child(born.pid);
  discard_rest();
  on_child_(number, gone_on.error());
  end({});
}

void ForkRequest::await(boost::asio::posix::stream_descriptor& descriptor, void (ForkRequest::*then)()) {
  descriptor.async_wait(descriptor.wait_read, [self = shared_from_this(), then](boost::system::error_code stopped) {
    if (!stopped && self->phase_ != Phase::kOver) (self.get()->*then)();
  });
  patience_.expires_after(kPatience);
  patience_.async_wait([self = shared_from_this()](boost::system::error_code stopped) {
    if (!stopped) self->run_out_of_patience();
  });
}

void ForkRequest::run_out_of_patience() {
  if (phase_ == Phase::kOver || patience_.expiry() > std::chrono::steady_clock::now()) return;  // it came meanwhile
  auto error = system_error("no answer from the preloaded Python", ETIMEDOUT);
  phase_ == Phase::kLettingGo ? hand_over(error) : end(error);
}

/// Those that are not our children yet end by themselves: the other end of their socket is gone.
void ForkRequest::discard_rest() {
  for (; next_ < born_.size(); ++next_) {
    const auto& born = born_[next_];
    if (!born.end) continue;
    link_.family.unspare(born.pid);
    discard_child(born.pid);
  }
  born_.clear();
  control_.reset();
}

bool ForkRequest::cancel() {
  const bool forking = phase_ == Phase::kForking || phase_ == Phase::kReleasing;
  on_end_ = nullptr;
  end({});
  return !forking;
}

void ForkRequest::end(Result<> how) {
  if (phase_ == Phase::kOver) return;
  auto self = shared_from_this();
  phase_ = Phase::kOver;
  patience_.cancel();
  answer_.reset();
  discard_rest();
  if (auto tell = std::exchange(on_end_, nullptr)) tell(std::move(how));
}

}  // namespace taas
