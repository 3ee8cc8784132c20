#include "proc/preload/preloaded_python.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "proc/family/family.hpp"
#include "proc/spawn/message_socket.hpp"
#include "proc/spawn/null_device.hpp"
#include "proc/spawn/python.hpp"

namespace taas {
namespace {

constexpr const char* kVariable = "TAAS_PRELOAD";
constexpr std::string_view kReady = "ready";
constexpr std::string_view kRefused = "refused ";
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
  auto interpreter = find_in_path(request.command.front(), find_variable(request.environment, "PATH").value_or(""));
  variables.push_back(fmt::format("{}=probe\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kVariable, request.options, ::getpid(),
                                  interpreter, fmt::join(request.modules, ","), fmt::join(request.per_rank, ","),
                                  fmt::join(request.set_by_program, ","), fmt::join(request.read_at_load, ","),
                                  fmt::join(request.read_later, ",")));
  return variables;
}

}  // namespace

struct PreloadedPython::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& loop, Family& given, OnSettled settled, Fd socket)
      : io(loop),
        family(given),
        on_settled(std::move(settled)),
        link(std::move(socket)),
        watched(loop, ::dup(link.get())) {}

  /// Its first message, or its end.
  void await_word() {
    watched.async_wait(watched.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped) self->hear();
    });
  }

  void hear() {
    auto word = receive_message(link, std::chrono::milliseconds(0));
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
    if (auto given = std::exchange(order, nullptr)) given->cancel();
    link.reset();
    watched.close();
    if (pid > 0) ::kill(pid, SIGKILL);  // not reaped yet: still its number
  }

  boost::asio::io_context& io;
  Family& family;
  OnSettled on_settled;
  Fd link;
  boost::asio::posix::stream_descriptor watched;  // a duplicate of `link`
  std::shared_ptr<ForkRequest> order;             // that is on its way
  int pid = -1;
  bool ready = false;
};

PreloadedPython::PreloadedPython(std::shared_ptr<State> state) : state_(std::move(state)) {}

PreloadedPython::~PreloadedPython() {
  state_->on_settled = nullptr;
  state_->end();
}

bool PreloadedPython::usable() const { return state_->ready; }

void PreloadedPython::spawn(std::vector<SpawnRequest> requests, ForkRequest::OnChild on_child,
                            ForkRequest::OnEnd on_end) {
  PreloadedLink link{state_->io, state_->family, state_->link, state_->watched};
  auto ended = [state = state_.get(), tell = std::move(on_end)](const Result<>& how) {
    state->order.reset();
    if (!how) state->end();
    tell(how);
  };
  state_->order = std::make_shared<ForkRequest>(link, std::move(requests), std::move(on_child), std::move(ended));
  auto order = state_->order;  // may end at once
  order->begin();
}

void PreloadedPython::cancel() {
  auto order = std::exchange(state_->order, nullptr);
  if (order && !order->cancel()) state_->end();
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
  wanted.ignored_signals = request.ignored_signals;
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
