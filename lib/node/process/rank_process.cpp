#include "node/process/rank_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "base/timer.hpp"
#include "plan/options/numbers.hpp"
#include "proc/family/family.hpp"
#include "proc/family/main_thread.hpp"
#include "proc/machine/gpu_memory.hpp"
#include "proc/output/capture.hpp"
#include "proc/output/terminal.hpp"
#include "proc/spawn/null_device.hpp"
#include "proc/spawn/spawn.hpp"
#include "run/verdict/fatal_error.hpp"
#include "run/verdict/gpu_memory.hpp"
#include "run/verdict/traceback.hpp"
#include "ui/text/line_assembler.hpp"

namespace taas::node {
namespace {

/// A prompt or a bar's state has no line end: it is shown when nothing has followed it for this long.
constexpr auto kQuiet = std::chrono::milliseconds(200);
constexpr std::size_t kMostOfRecord = 16 << 20;  // 2,000 calls with their stacks are 1 to 2 MB
constexpr std::size_t kCallsOfGroup = 4;         // before the one that hangs nothing is of interest
/// Of the program's own error file. A longer one is not the description of an error that torch's @record writes.
constexpr std::size_t kMostErrorFile = 256 * 1024;
constexpr const char* kFactsSuffix = ".facts";  // as lib/python/preload has it
constexpr std::size_t kMostFacts = 256 * 1024;
constexpr const char* kRaisedSuffix = ".raised";  // as lib/python/preload has it
constexpr std::size_t kMostRaised = 1024;
constexpr auto kLook = std::chrono::seconds(3);  // after the first words of an exception, and then again and again
constexpr auto kLastLook = std::chrono::seconds(60);

constexpr auto kPatienceWithDriver = std::chrono::milliseconds(500);  // it needs some milliseconds

std::optional<std::string_view> value_in(const std::vector<std::string>& environment, const std::string& name) {
  auto found = std::ranges::find_if(environment, [&](const auto& entry) { return entry.starts_with(name + "="); });
  if (found == environment.end()) return std::nullopt;
  return std::string_view(*found).substr(name.size() + 1);
}

/// One of a rank's two output streams: its pipe, its lines, its last words.
struct OutputStream {
  std::unique_ptr<Capture> capture;
  ui::LineAssembler assembler;
  LastWords last_words;
  std::unique_ptr<Timer> quiet;
  bool waiting_for_quiet = false;
  Instant last_bytes_at{};
};

/// There is such a file only after a hang, or what torch takes for one.
std::vector<run::CollectiveGroup> collectives_in(const HeldPath& flight_record) {
  auto record = flight_record.folder.read(flight_record.name, kMostOfRecord);
  auto groups = record ? run::read_flight_record(*record, kCallsOfGroup) : std::nullopt;
  return groups ? std::move(*groups) : std::vector<run::CollectiveGroup>();
}

/// Others than the rank itself, whose own memory is free by now.
void ask_who_holds_gpu(run::Evidence& evidence, int pid, GpuOrder order) {
  for (auto& holder : gpu_memory_holders(evidence.gpu, order, kPatienceWithDriver)) {
    if (holder.pid != pid)
      evidence.gpu_holders.push_back({holder.pid, std::move(holder.name), holder.bytes.value_or(0)});
  }
}

/// The record is of interest of a rank that was stopped too: the others may have waited for it.
void read_evidence(run::Evidence& evidence, int pid, GpuOrder order, const HeldPath& flight_record,
                   const HeldPath& error_file) {
  const bool is_full = std::ranges::any_of(evidence.last_lines, run::tells_of_full_gpu);
  if (!evidence.gpu.empty() && is_full) ask_who_holds_gpu(evidence, pid, order);
  if (!evidence.gpu.empty() && !is_full) evidence.gpu_trouble = gpu_trouble(evidence.gpu, order, kPatienceWithDriver);
  if (!flight_record.empty()) evidence.collectives = collectives_in(flight_record);
  if (error_file.empty()) return;
  if (auto text = error_file.folder.read(error_file.name, kMostErrorFile)) evidence.error_file = std::move(*text);
}

/// A preloaded rank leaves it beside its error file; nobody else reads it.
std::optional<run::TrainingFacts> take_facts(const HeldPath& error_file) {
  const auto facts_file = error_file.with(kFactsSuffix);
  auto text = facts_file.folder.read(facts_file.name, kMostFacts);
  if (!text) return std::nullopt;
  facts_file.folder.remove(facts_file.name);
  auto read = parse_json(*text);
  if (!read) return std::nullopt;
  auto facts = from_json<run::TrainingFacts>(*read);
  return facts ? std::optional(std::move(*facts)) : std::nullopt;
}

/// What a preloaded rank whose main program has raised waits for. Nothing: it has not said that it has.
std::optional<std::string> read_raised(const HeldPath& error_file) {
  auto told = error_file.folder.read(error_file.name + kRaisedSuffix, kMostRaised);
  return told ? std::optional(printable(*told)) : std::nullopt;
}

/// A rank that has begun to say that it raised, and whose process lives.
struct LingerWatch {
  std::unique_ptr<Timer> timer;
  bool watching = false;
  bool error_seen = false;  // and not only words of another kind
  Instant since{};
  std::optional<MainThread> thread;  // as it was seen last
  std::optional<run::Lingering> told;
  Instant told_at{};
  bool certain = false;  // by the rank's own word: nothing can change it
};

/// What is known of a rank that has ended.
struct Left {
  run::Evidence evidence;
  std::optional<run::TrainingFacts> facts;
};

}  // namespace

struct RankProcess::State : std::enable_shared_from_this<State> {
  explicit State(DiskThread& thread) : disk(thread) {}

  DiskThread& disk;
  RankStart start;
  RankCallbacks callbacks;
  OutputStream out;
  OutputStream err;
  Family* family = nullptr;
  int pid = -1;
  bool preloaded = false;
  bool running = true;
  bool paused = false;
  LingerWatch linger;

  OutputStream& stream(ui::Stream which) { return which == ui::Stream::kStdout ? out : err; }

  void open(boost::asio::io_context& io, ui::Stream which, Fd pipe, const HeldPath& file) {
    CaptureCallbacks capture;
    capture.on_bytes = [this, which](std::string_view bytes, Instant at) { take(which, bytes, at); };
    capture.on_log_error = callbacks.on_log_error;
    stream(which).quiet = std::make_unique<Timer>(io, [this, which] { quiet_or_wait(which); });
    stream(which).capture = std::make_unique<Capture>(io, std::move(pipe), CaptureLog{&disk, file}, std::move(capture));
  }

  void take(ui::Stream which, std::string_view bytes, Instant at) {
    OutputStream& from = stream(which);
    from.last_bytes_at = at;
    pass_on(which, from.assembler.add(bytes), at);
    if (from.waiting_for_quiet || !from.assembler.has_partial()) return;
    from.waiting_for_quiet = true;
    from.quiet->set(at + kQuiet);
  }

  /// A busy loop, or a console that holds the rank back, is no sign that the rank is quiet.
  void quiet_or_wait(ui::Stream which) {
    OutputStream& from = stream(which);
    if (!paused) from.capture->drain_now();
    Instant now = steady_now();
    if (!paused && now - from.last_bytes_at >= kQuiet) return show_partial(which, now);
    from.quiet->set(now + kQuiet);
  }

  void show_partial(ui::Stream which, Instant at) {
    stream(which).waiting_for_quiet = false;
    pass_on(which, stream(which).assembler.flush_partial(), at);
  }

  void pass_on(ui::Stream which, std::vector<ui::AssembledLine> lines, Instant at) {
    for (auto& line : lines) {
      if (!line.progress && !line.text.empty()) {
        stream(which).last_words.add(line.text, at);
        if (which == ui::Stream::kStderr) watch_after(line.text, at);
      }
      callbacks.on_line({start.rank, which, std::move(line.text), line.progress, at, line.open, std::move(line.raw)});
    }
  }

  void flush() {
    for (auto which : {ui::Stream::kStdout, ui::Stream::kStderr}) {
      stream(which).capture->drain_now();
      pass_on(which, stream(which).assembler.finish(), steady_now());
    }
  }

  /// A preloaded rank knows for itself whether it has raised, in whatever form that was printed.
  void watch_after(std::string_view line, Instant at) {
    if (linger.certain || !callbacks.on_lingering) return;
    const bool error = run::starts_fatal_error(line);
    linger.error_seen = error || (linger.watching && linger.error_seen);
    if (linger.watching || !(preloaded || error)) return;
    linger.watching = true;
    linger.since = at;
    linger.thread.reset();
    linger.timer->set(at + kLook);
  }

  void look() {
    if (!running) return;
    if (paused) return linger.timer->set(steady_now() + kLook);  // silence would prove nothing
    for (auto which : {ui::Stream::kStdout, ui::Stream::kStderr}) stream(which).capture->drain_now();
    const bool still_talks = steady_now() - err.last_bytes_at < kLook;
    if (!linger.error_seen && still_talks) return linger.timer->set(steady_now() + kLook);
    auto told = std::make_shared<std::optional<std::string>>();
    auto evidence = std::make_shared<run::Evidence>(words_so_far());
    disk.run(
        [=, watched = preloaded, error = start.error_file] {
          if (error.empty()) return;
          if (watched) *told = read_raised(error);
          if (auto text = error.folder.read(error.name, kMostErrorFile)) evidence->error_file = std::move(*text);
        },
        [=, weak = weak_from_this()] {
          if (auto self = weak.lock(); self && self->running) self->judge(*told, std::move(*evidence));
        });
  }

  void judge(const std::optional<std::string>& raised, run::Evidence evidence) {
    const Instant now = steady_now();
    const auto silent_since = std::max({out.last_bytes_at, err.last_bytes_at, linger.since});
    const auto before = std::exchange(linger.thread, look_at_main_thread(pid));
    run::SignsOfLife signs;
    signs.main_has_raised = linger.certain = raised.has_value();
    signs.would_have_said = preloaded;
    signs.error_is_recorded = !evidence.error_file.empty();
    signs.rests = before && linger.thread == before;
    signs.waits_for_lock = linger.thread && linger.thread->waits_for_lock;
    signs.silent_for = now - silent_since;
    signs.argv = read_command_line(pid);
    if (!linger.error_seen) evidence.first_error_at = {};  // an older one
    auto state = run::judge_lingering(start.rank, evidence, signs);
    const bool moved = silent_since > linger.told_at || !signs.rests;
    if (!state && linger.told) state = moved ? run::Lingering::kGoesOn : *linger.told;
    tell_lingering(state, raised.value_or(""), std::move(evidence));
    linger.watching = !linger.certain && (linger.told || (linger.error_seen && now - linger.since < kLastLook));
    if (linger.watching) linger.timer->set(now + kLook);
  }

  void tell_lingering(std::optional<run::Lingering> state, std::string waits_for, run::Evidence evidence) {
    if (!state || state == linger.told) return;
    linger.told = state == run::Lingering::kGoesOn ? std::nullopt : state;
    linger.told_at = steady_now();
    callbacks.on_lingering(*state, std::move(waits_for), std::move(evidence));
  }

  /// Both pipes already hold all that the process itself has written: its last words are complete before its end is
  /// told.
  void ended(run::ExitStatus status, Instant at) {
    running = false;
    for (auto which : {ui::Stream::kStdout, ui::Stream::kStderr}) {
      stream(which).capture->drain_now();
      show_partial(which, at);
    }
    auto found = std::make_shared<Left>(Left{last_words(status), std::nullopt});
    disk.run(
        [=, failed = !status.success(), process = pid, record = start.flight_record, error = start.error_file,
         order = read_gpu_order(value_in(start.environment, "CUDA_DEVICE_ORDER")), watched = preloaded] {
          read_evidence(found->evidence, process, order, record, failed ? error : HeldPath());
          if (!watched || error.empty()) return;
          found->facts = take_facts(error);
          error.folder.remove(error.name + kRaisedSuffix);
        },
        [=, weak = weak_from_this()] {
          if (auto self = weak.lock()) self->tell(status, std::move(*found), at);
        });
  }

  void tell(run::ExitStatus status, Left left, Instant at) const {
    if (left.facts && callbacks.on_facts) callbacks.on_facts(std::move(*left.facts));
    callbacks.on_exit(status, std::move(left.evidence), at);
  }

  run::Evidence last_words(const run::ExitStatus& status) const {
    if (!status.success()) return words_so_far();
    run::Evidence evidence;
    evidence.stderr_path = start.stderr_file.path();
    return evidence;
  }

  run::Evidence words_so_far() const {
    run::Evidence evidence;
    bool silent = err.last_words.empty();
    evidence.last_lines = silent ? out.last_words.lines() : err.last_words.lines();
    evidence.first_error_at = err.last_words.first_error_at();
    evidence.stderr_path = silent && !out.last_words.empty() ? start.stdout_file.path() : start.stderr_file.path();
    evidence.gpu = gpu_in_question(evidence.last_lines);
    return evidence;
  }

  /// The one on which the rank found too little memory, or which has failed, as the driver names it; empty: there is
  /// none.
  std::string gpu_in_question(const std::vector<std::string>& last_lines) const {
    auto visible = value_in(start.environment, "CUDA_VISIBLE_DEVICES");
    auto full = std::ranges::find_if(last_lines, run::tells_of_full_gpu);
    if (full != last_lines.end()) return name_of_visible_gpu(gpu_of_error(*full), visible).value_or("");
    if (std::ranges::none_of(last_lines, run::tells_of_cuda_error)) return {};
    // CUDA does not say on which: that of the local rank, or the first of the rank's own.
    bool own = value_in(start.environment, "TAAS_DEVICES_PER_RANK") != "1";
    auto local_rank = plan::parse_integer(value_in(start.environment, "LOCAL_RANK").value_or("0"));
    return name_of_visible_gpu(own ? 0 : local_rank.value_or(0), visible).value_or("");
  }
};

RankProcess::RankProcess(std::shared_ptr<State> state) : state_(std::move(state)) {}
RankProcess::~RankProcess() = default;

std::vector<int> signals_to_ignore(const std::vector<std::string>& environment) {
  if (!value_in(environment, "SLURM_STEP_ID") && !value_in(environment, "SLURM_STEPID")) return {};
  return {SIGUSR1, SIGUSR2};
}

Result<PreparedRank> PreparedRank::make(RankStart start) {
  auto out = start.on_terminal ? make_terminal(STDOUT_FILENO) : make_pipe();
  if (!out && start.on_terminal) out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  PreparedRank prepared{std::move(start), Fd(), std::move(*out), std::move(*err)};
  if (prepared.start.inherits_stdin) return prepared;
  auto null = open_null();
  if (!null) return null.error();
  prepared.input = std::move(*null);
  return prepared;
}

SpawnRequest PreparedRank::request() const {
  SpawnRequest request;
  request.argv = start.argv;
  request.environment = start.environment;
  if (input) request.standard_input = &input;
  request.standard_output = &out.write;
  request.standard_error = &err.write;
  request.inherited = start.inherited;
  request.read_only = start.read_only;
  request.open_files_limit = start.open_files_limit;
  request.processors = start.processors;
  request.ignored_signals = signals_to_ignore(start.environment);
  return request;
}

Result<std::unique_ptr<RankProcess>> RankProcess::start(boost::asio::io_context& io, Family& family, DiskThread& disk,
                                                        RankStart start, RankCallbacks callbacks) {
  auto prepared = PreparedRank::make(std::move(start));
  if (!prepared) return prepared.error();
  auto child = spawn(prepared->request());
  if (!child) return child.error();
  return adopt(io, family, disk, std::move(*prepared), std::move(*child), std::move(callbacks));
}

std::unique_ptr<RankProcess> RankProcess::adopt(boost::asio::io_context& io, Family& family, DiskThread& disk,
                                                PreparedRank prepared, Child child, RankCallbacks callbacks) {
  auto state = std::make_shared<State>(disk);
  state->start = std::move(prepared.start);
  state->callbacks = std::move(callbacks);
  state->open(io, ui::Stream::kStdout, std::move(prepared.out.read), state->start.stdout_file);
  state->open(io, ui::Stream::kStderr, std::move(prepared.err.read), state->start.stderr_file);
  state->family = &family;
  state->pid = child.pid;
  state->preloaded = child.preloaded;
  state->linger.timer = std::make_unique<Timer>(io, [raw = state.get()] { raw->look(); });
  family.watch(std::move(child), [weak = state->weak_from_this()](ExitStatus status, Instant at) {
    if (auto self = weak.lock()) self->ended(status, at);
  });
  return std::unique_ptr<RankProcess>(new RankProcess(std::move(state)));
}

int RankProcess::pid() const { return state_->pid; }
bool RankProcess::preloaded() const { return state_->preloaded; }
bool RankProcess::running() const { return state_->running; }
void RankProcess::signal(int number) { state_->family->signal_group(state_->pid, number); }

void RankProcess::pause() {
  state_->paused = true;
  state_->out.capture->pause();
  state_->err.capture->pause();
}

void RankProcess::resume() {
  state_->paused = false;
  state_->out.capture->resume();
  state_->err.capture->resume();
}

void RankProcess::flush() { state_->flush(); }

}  // namespace taas::node
