#include "launch/host_command.hpp"

#include <cerrno>

#include "base/files.hpp"
#include "node/process/last_words.hpp"
#include "proc/family/family.hpp"
#include "proc/output/capture.hpp"
#include "proc/spawn/spawn.hpp"
#include "ui/text/line_assembler.hpp"

namespace taas::launch {

struct HostCommand::State {
  Family* family = nullptr;
  int pid = -1;
  bool running = true;
  OnEnd on_end;
  std::function<void(const std::string&)> on_line;
  ui::LineAssembler assembler;
  node::LastWords last_words;
  std::unique_ptr<Capture> capture;

  void keep(const std::vector<ui::AssembledLine>& lines, Instant at) {
    for (const auto& line : lines) {
      if (line.text.empty()) continue;
      last_words.add(line.text, at);
      if (on_end) on_line(line.text);
    }
  }

  void ended(ExitStatus status, Instant at) {
    running = false;
    family->unspare(pid);
    capture->drain_now();
    keep(assembler.finish(), at);
    if (auto tell = std::exchange(on_end, nullptr)) tell(status, last_words.lines());
  }
};

HostCommand::HostCommand(std::shared_ptr<State> state) : state_(std::move(state)) {}
HostCommand::~HostCommand() { state_->on_end = nullptr; }

Result<std::unique_ptr<HostCommand>> HostCommand::start(boost::asio::io_context& io, Family& family, Options options,
                                                        OnEnd on_end) {
  auto input = make_pipe();
  if (!input) return input.error();
  auto output = make_pipe();
  if (!output) return output.error();
  // A pipe holds 64 KiB, far more than a bootstrap line: this does not block.
  if (auto written = write_all(input->write, options.input); !written) return written.error();
  input->write.reset();

  SpawnRequest request;
  request.argv = std::move(options.argv);
  request.environment = std::move(options.environment);
  request.standard_input = &input->read;
  request.standard_output = &output->write;
  request.standard_error = &output->write;
  request.open_files_limit = options.open_files_limit;
  request.when_memory_runs_out = WhenMemoryRunsOut::kLikeLauncher;  // with it the agents of other machines would go
  auto child = spawn(request);
  if (!child) return child.error();

  auto state = std::make_shared<State>();
  state->family = &family;
  state->pid = child->pid;
  state->on_end = std::move(on_end);
  state->on_line = std::move(options.on_line);
  CaptureCallbacks calls;
  calls.on_bytes = [raw = state.get()](std::string_view bytes, Instant at) {
    raw->keep(raw->assembler.add(bytes), at);
  };
  state->capture = std::make_unique<Capture>(io, std::move(output->read), CaptureLog{}, std::move(calls));
  if (options.spared) family.spare(child->pid);
  family.watch(std::move(*child), [state](ExitStatus status, Instant at) { state->ended(status, at); });
  return std::unique_ptr<HostCommand>(new HostCommand(std::move(state)));
}

bool HostCommand::running() const { return state_->running; }

void HostCommand::signal(int number) {
  if (state_->running) state_->family->signal_group(state_->pid, number);
}

}  // namespace taas::launch
