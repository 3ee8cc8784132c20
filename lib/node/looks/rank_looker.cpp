#include "node/looks/rank_looker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "node/looks/native_looks.hpp"
#include "node/looks/wait_words.hpp"
#include "node/process/step_files.hpp"
#include "proc/inspect/thread_facts.hpp"

namespace taas::node {
namespace {

using run::SeenFrame;
using run::SeenProcess;
using run::SeenThread;

// What matters of a rank fits into a message of some kilobytes.
constexpr std::size_t kMostInnermost = 6;  // frames, whoever wrote them
constexpr std::size_t kMostOwn = 6;        // ... and of the user's
constexpr std::size_t kMostThreads = 6;
constexpr std::size_t kMostChildren = 8;
constexpr std::size_t kMostOfCommand = 120;

/// What a child has of its parent's calls from before the fork tells nothing of what it does.
bool begins_a_process(const PythonFrame& frame) {
  return frame.file.ends_with("multiprocessing/process.py") && frame.function.find("_bootstrap") != std::string::npos;
}

std::vector<SeenFrame> frames_of(const PythonThread& thread, RankLooker::Detail detail) {
  std::vector<SeenFrame> result;
  std::size_t own = 0;
  const PythonFrame* imported = nullptr;  // the outermost module that the user's code has asked for, if it is left out
  for (const auto& frame : thread.frames) {
    if (begins_a_process(frame)) break;
    const bool is_own = run::is_own_file(frame.file);
    if (is_own && own == 0 && imported != nullptr)
      result.push_back({imported->function, imported->file, imported->line});
    const bool shown =
        detail == RankLooker::Detail::kEverything || result.size() < kMostInnermost || (is_own && own < kMostOwn);
    own += is_own && shown ? 1 : 0;
    if (shown) result.push_back({frame.function, frame.file, frame.line});
    if (!is_own && frame.function == "<module>") imported = shown ? nullptr : &frame;
  }
  return result;
}

bool has_own(const SeenThread& thread) {
  return std::ranges::any_of(thread.frames, [](const SeenFrame& frame) { return run::is_own_file(frame.file); });
}

std::optional<SeenThread> see_thread(int pid, int tid) {
  const auto facts = read_thread(pid, tid);
  if (!facts) return std::nullopt;
  auto wait = describe_wait(pid, *facts);
  SeenThread seen;
  seen.tid = tid;
  seen.name = printable(facts->name);
  seen.wait = wait.wait;
  seen.waits_for = std::move(wait.waits_for);
  return seen;
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string command_of(const Process& process) {
  auto words = describe(process);
  if (words.size() > kMostOfCommand) words = words.substr(0, kMostOfCommand) + "...";
  return words;
}

/// Scans /proc once for all.
std::map<int, std::vector<Process>> families_of(const std::vector<RankLooker::Target>& targets) {
  std::map<int, std::vector<Process>> result;
  std::map<int, int> leader_of;
  for (const auto& target : targets) leader_of[target.pid] = target.pid;
  // A parent comes before its children there.
  for (const auto& process : descendants()) {
    if (leader_of.contains(process.pid)) continue;
    const auto parent = leader_of.find(process.parent);
    if (parent == leader_of.end()) continue;
    leader_of[process.pid] = parent->second;
    result[parent->second].push_back(process);
  }
  return result;
}

/// Those of the user's and what they call first; all, where everything is asked for.
std::vector<SeenFrame> shortened(const std::vector<SeenFrame>& frames, RankLooker::Detail detail) {
  if (detail == RankLooker::Detail::kEverything) return frames;
  std::vector<SeenFrame> result;
  std::size_t own = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const bool is_own = run::is_own_file(frames[i].file);
    const bool calls = own == 0 && i + 1 < frames.size() && run::is_own_file(frames[i + 1].file);
    if ((is_own && own < kMostOwn) || result.size() < kMostInnermost || calls) result.push_back(frames[i]);
    own += is_own ? 1 : 0;
  }
  return result;
}

/// The function of C that Python has called, itself or through ctypes.
std::optional<SeenFrame> extension_of(const std::vector<SeenFrame>& frames) {
  const auto is_python = [](const SeenFrame& frame) {
    return frame.function.starts_with("Py") || frame.function.starts_with("_Py") || contains(frame.file, "python") ||
           contains(frame.file, "libffi") || contains(frame.file, "_ctypes");
  };
  const auto python = std::ranges::find_if(frames, is_python);
  if (python == frames.begin()) return std::nullopt;
  const auto& called = *std::prev(python);
  const auto library = base_name(called.file);
  return SeenFrame{called.function, library.starts_with('<') ? library : fmt::format("<{}>", library), 0};
}

void add_stack(run::SeenProcess& process, const NamedStack& stack, RankLooker::Detail detail) {
  const auto thread = std::ranges::find(process.threads, stack.tid, &SeenThread::tid);
  if (!stack.unread.empty()) process.unread = stack.unread;
  if (thread == process.threads.end()) return;
  if (!thread->holds_gil) {
    thread->frames = shortened(stack.frames, detail);
  } else if (const auto function = extension_of(stack.frames)) {
    thread->frames.insert(thread->frames.begin(), *function);
  }
}

/// Of ranks that are no Python, and of those where C code holds the GIL and waits.
void add_native_frames(std::vector<run::RankLook>& looks, const std::set<int>& no_python, RankLooker::Detail detail) {
  std::vector<StackSnapshot> snapshots;
  const auto take = [&snapshots](int pid, int tid) {
    if (auto snapshot = snapshot_stack(pid, tid)) snapshots.push_back(std::move(*snapshot));
  };
  for (const auto& look : looks) {
    const auto& process = look.processes.front();
    for (const auto& thread : process.threads) {
      if (thread.holds_gil && thread.wait != run::Wait::kNothing) take(process.pid, thread.tid);
    }
    if (!no_python.contains(process.pid)) continue;
    const bool all = detail == RankLooker::Detail::kEverything;
    for (int tid : all ? threads_of(process.pid) : std::vector<int>{process.pid}) take(process.pid, tid);
  }
  for (const auto& stack : name_frames(snapshots)) {
    const auto pid = std::ranges::find(snapshots, stack.tid, &StackSnapshot::tid)->pid;
    const auto look = std::ranges::find_if(looks, [&](const auto& one) { return one.processes.front().pid == pid; });
    add_stack(look->processes.front(), stack, detail);
  }
}

}  // namespace

std::vector<run::RankLook> RankLooker::look(const std::vector<Target>& targets, Detail detail, bool native) {
  auto families = families_of(targets);
  no_python_.clear();
  std::vector<run::RankLook> looks;
  for (const auto& target : targets) {
    auto look = look_at(target, families[target.pid], detail);
    if (!look.processes.front().threads.empty()) looks.push_back(std::move(look));  // else it has ended
  }
  if (native) add_native_frames(looks, no_python_, detail);
  return looks;
}

run::RankLook RankLooker::look_at(const Target& target, const std::vector<Process>& below, Detail detail) {
  run::RankLook look;
  look.rank = target.rank;
  look.data_worker = target.data_worker;
  look.at = steady_now();
  if (const auto times = read_run_times(target.pid)) look.switches = times->switches;
  look.processes.push_back(see(target.pid, detail));
  auto add_use = [&look](int pid) {
    const auto use = read_use(pid);
    look.cpu_ns += use.cpu_ns;
    look.io_bytes += use.io_bytes;
    look.memory_bytes += use.memory_bytes;
  };
  add_use(target.pid);
  if (!target.step_file.empty()) {
    const auto count = read_steps(target.step_file);
    look.steps = count.steps;
    look.step_rate = count.rate;
    look.step_at = Instant(std::chrono::nanoseconds(count.last_ns));
  }
  for (const auto& process : below) {
    add_use(process.pid);
    const bool room = detail == Detail::kEverything || look.processes.size() <= kMostChildren;
    if (!room) continue;
    auto seen = see(process.pid, detail);
    if (seen.threads.empty()) continue;
    seen.command = command_of(process);
    look.processes.push_back(std::move(seen));
  }
  return look;
}

/// The main thread; of others those that hold the GIL, run code of the user's or may transfer something, as far as
/// there is room.
run::SeenProcess RankLooker::see(int pid, Detail detail) {
  SeenProcess process;
  process.pid = pid;
  auto main = see_thread(pid, pid);
  if (!main) return process;
  process.threads.push_back(std::move(*main));
  auto stacks = python_.read(pid);
  if (!stacks) process.unread = stacks.error().message;
  if (stacks && !*stacks) no_python_.insert(pid);
  const auto python = stacks && *stacks ? std::move((*stacks)->threads) : std::vector<PythonThread>();
  for (std::size_t i = 0; i < python.size(); ++i) {
    const auto& thread = python[i];
    if (thread.tid == pid || (i == 0 && thread.tid == 0)) {
      process.threads.front().holds_gil = thread.holds_gil;
      process.threads.front().frames = frames_of(thread, detail);
      continue;
    }
    auto seen = see_thread(pid, thread.tid);
    if (!seen) seen.emplace().tid = thread.tid;
    seen->holds_gil = thread.holds_gil;
    seen->frames = frames_of(thread, detail);
    const bool transfers =
        !seen->frames.empty() && (seen->wait == run::Wait::kNetwork || seen->wait == run::Wait::kEvents);
    const bool matters = detail == Detail::kEverything || seen->holds_gil || has_own(*seen) || transfers;
    if (matters && (detail == Detail::kEverything || process.threads.size() < kMostThreads)) {
      process.threads.push_back(std::move(*seen));
    }
  }
  if (detail != Detail::kEverything) return process;
  for (int tid : threads_of(pid)) {
    const auto known = [tid](const SeenThread& seen) { return seen.tid == tid; };
    if (std::ranges::any_of(process.threads, known)) continue;
    if (auto seen = see_thread(pid, tid)) process.threads.push_back(std::move(*seen));
  }
  return process;
}

}  // namespace taas::node
