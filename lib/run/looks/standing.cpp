#include "run/looks/standing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "run/events/words.hpp"

namespace taas::run {
namespace {

// Between two looks, a second.
constexpr double kBusyShare = 0.5;       // of one processor, in the queue for one too
constexpr double kBusyBytes = 20'000;    // read and written
constexpr double kLiveSwitches = 0.8;    // of the main thread: polling once a second is movement
constexpr double kTransferShare = 0.03;  // of a processor, by the threads that carry a collective
constexpr std::size_t kMostNamedByNode = 4;
constexpr std::size_t kMostRuns = 6;

bool is_own(const SeenFrame& frame) { return is_own_file(frame.file); }

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// "train.py:88"; of C++ without debug information "trainer".
std::string line_of(const SeenFrame& frame) {
  return frame.line == 0 ? base_name(frame.file) : fmt::format("{}:{}", base_name(frame.file), frame.line);
}

/// The library's frames above the first one of the user's, innermost first.
std::vector<SeenFrame> library_frames(const SeenThread& thread) {
  const auto end = std::ranges::find_if(thread.frames, is_own);
  return {thread.frames.begin(), end};
}

std::vector<SeenFrame> own_frames(const SeenThread& thread) {
  std::vector<SeenFrame> result;
  std::ranges::copy_if(thread.frames, std::back_inserter(result), is_own);
  return result;
}

bool any_in(const std::vector<SeenFrame>& frames, std::string_view part) {
  return std::ranges::any_of(frames, [&](const SeenFrame& frame) { return contains(frame.file, part); });
}

bool any_named(const std::vector<SeenFrame>& frames, std::string_view function, std::string_view file) {
  return std::ranges::any_of(
      frames, [&](const SeenFrame& frame) { return frame.function == function && frame.file.ends_with(file); });
}

bool is_of(const SeenFrame& frame, std::initializer_list<std::string_view> namespaces) {
  return std::ranges::any_of(namespaces, [&](std::string_view name) { return frame.function.starts_with(name); });
}

bool is_of_data_loader(const SeenFrame& frame) { return is_of(frame, {"taas::DataLoader"}); }

/// "all_reduce" of taas::all_reduce, of C++ code that waits in a collective.
std::string native_collective_of(const std::vector<SeenFrame>& library) {
  const auto waits = [](const SeenFrame& frame) {
    return is_of(frame, {"taas::", "c10d::", "gloo::", "nccl"}) && !is_of_data_loader(frame) &&
           !is_of(frame, {"taas::save", "taas::load", "taas::Checkpoint"});
  };
  if (std::ranges::none_of(library, waits)) return {};
  const auto called = std::find_if(library.rbegin(), library.rend(), [](const SeenFrame& frame) {
    return is_of(frame, {"taas::", "c10d::", "torch::", "at::", "gloo::", "nccl"});
  });
  return called->function.substr(called->function.rfind(':') + 1);
}

/// The call by which the user's code waits for other ranks; empty: it does not.
std::string collective_of(const std::vector<SeenFrame>& library) {
  constexpr std::array<std::string_view, 5> kParts{"/torch/distributed/", "/deepspeed/comm/", "/horovod/",
                                                   "/torch/nn/parallel/distributed.py", "/torchft/"};
  std::string call;
  for (const auto& frame : library) {
    const bool is_distributed =
        std::ranges::any_of(kParts, [&](std::string_view part) { return contains(frame.file, part); });
    const auto name = frame.function.substr(frame.function.rfind('.') + 1);
    const bool tells = is_distributed && name != "wrapper" && name != "inner" && name != "__init__";
    if (tells && (call.empty() || !name.starts_with('_'))) call = name;
    if (is_distributed && call.empty()) call = frame.function;
  }
  if (!call.empty()) return call;
  if (any_named(library, "_engine_run_backward", "torch/autograd/graph.py")) return "backward";
  return native_collective_of(library);
}

bool is_in_debugger(const SeenThread& thread) {
  constexpr std::array<std::string_view, 5> kDebuggers{"/pdb.py", "/bdb.py", "/debugpy/", "/pydevd", "/ipdb/"};
  return std::ranges::any_of(kDebuggers, [&](std::string_view part) { return any_in(thread.frames, part); });
}

/// "threading.Event.wait", of the nearest library frame below which the user's code waits; empty: it calls none.
std::string call_of(const std::vector<SeenFrame>& library) {
  if (library.empty()) return {};
  const auto& outer = library.back();
  auto module = base_name(outer.file);
  module = module.substr(0, module.rfind('.'));
  return outer.file.starts_with('<') ? outer.function : fmt::format("{}.{}", module, outer.function);
}

/// " (tokenize of libtokens.so)", if that is known.
std::string extension_of(const SeenThread& thread) {
  if (thread.frames.empty() || !contains(thread.frames.front().file, ".so")) return {};
  const auto& frame = thread.frames.front();
  const auto library = frame.file.substr(1, frame.file.size() - 2);  // without its angle brackets
  return frame.function.empty() ? fmt::format(" ({})", library) : fmt::format(" ({} of {})", frame.function, library);
}

std::string with_wait(const SeenThread& thread, const std::vector<SeenFrame>& library) {
  if (thread.wait == Wait::kStopped) return "is stopped by " + thread.waits_for;
  if (thread.wait == Wait::kDisk) return "waits for " + thread.waits_for;
  if (thread.holds_gil && thread.wait != Wait::kNothing) {
    const auto extension = extension_of(thread);
    return thread.wait == Wait::kTime
               ? fmt::format("holds the GIL in C code{}, asleep", extension)
               : fmt::format("holds the GIL in C code{}, and waits for {}", extension, thread.waits_for);
  }
  if (thread.wait == Wait::kTime) return "sleeps";
  const auto call = call_of(library);
  const bool tells = thread.wait == Wait::kLock && !call.empty();
  return tells ? fmt::format("waits in {}", call) : fmt::format("waits for {}", thread.waits_for);
}

std::string rate(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.1f} GB/s", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.0f} MB/s", bytes / 1e6);
  return fmt::format("{:.0f} kB/s", bytes / 1e3);
}

/// How much a rank has done from one look to the next, in one second.
struct Pace {
  double share = 0;
  double bytes = 0;
  double switches = 0;
  bool other_line = false;
};

double per_second(std::uint64_t before, std::uint64_t now, double duration) {
  return now > before && duration > 0 ? static_cast<double>(now - before) / duration : 0;
}

Pace pace_of(const RankLook& before, const RankLook& now) {
  const double duration = seconds(now.at - before.at);
  Pace pace{per_second(before.cpu_ns, now.cpu_ns, duration) / 1e9, per_second(before.io_bytes, now.io_bytes, duration),
            per_second(before.switches, now.switches, duration)};
  const bool both = !before.processes.empty() && !now.processes.empty();
  if (both && !before.processes[0].threads.empty() && !now.processes[0].threads.empty()) {
    pace.other_line = own_frames(before.processes[0].threads[0]) != own_frames(now.processes[0].threads[0]);
  }
  return pace;
}

void place(RankStanding& standing, const SeenThread& thread, const std::string& call) {
  standing.own_frames = own_frames(thread);
  if (!standing.own_frames.empty()) standing.line = line_of(standing.own_frames.front());
  const auto& function = standing.own_frames.empty() ? std::string() : standing.own_frames.front().function;
  const auto what = !call.empty() ? call : function == "<module>" ? std::string() : function;
  const bool both = !what.empty() && !standing.line.empty();
  standing.place = both ? fmt::format("{} ({})", what, standing.line) : what + standing.line;
}

/// Another thread of the same process that runs the user's code.
const SeenThread* working_thread(const SeenProcess& process) {
  const auto found =
      std::ranges::find_if(process.threads.begin() + 1, process.threads.end(),
                           [](const SeenThread& thread) { return std::ranges::any_of(thread.frames, is_own); });
  return found == process.threads.end() ? nullptr : &*found;
}

/// Another thread that waits for the network or for events may carry what the main thread waits for, as an upload.
bool has_transferring_thread(const SeenProcess& process) {
  return std::any_of(process.threads.begin() + 1, process.threads.end(), [](const SeenThread& thread) {
    return !thread.frames.empty() && (thread.wait == Wait::kNetwork || thread.wait == Wait::kEvents);
  });
}

const SeenThread* gil_holder(const SeenProcess& process) {
  const auto found = std::ranges::find_if(process.threads, [](const SeenThread& thread) { return thread.holds_gil; });
  return found == process.threads.end() ? nullptr : &*found;
}

std::string at_place(const SeenThread& thread) {
  const auto own = own_frames(thread);
  return own.empty() ? std::string() : fmt::format(" at {}", line_of(own.front()));
}

/// Threads have names of their own from Python 3.14 on.
std::string name_thread(const SeenThread& thread, const SeenThread& main) {
  return thread.name.empty() || thread.name == main.name ? "another thread" : "thread " + thread.name;
}

/// A child that runs the user's code, such as a DataLoader's worker.
const SeenProcess* working_child(const RankLook& look) {
  const auto found =
      std::ranges::find_if(look.processes.begin() + 1, look.processes.end(), [](const SeenProcess& process) {
        return !process.threads.empty() && std::ranges::any_of(process.threads.front().frames, is_own);
      });
  return found == look.processes.end() ? nullptr : &*found;
}

bool waits_for_threads(const std::vector<SeenFrame>& library, const SeenThread& main) {
  return any_named(library, "_shutdown", "threading.py") ||
         (own_frames(main).empty() && any_in(main.frames, "/threading.py"));
}

bool is_purposely(Wait wait) {
  return wait == Wait::kTime || wait == Wait::kInput || wait == Wait::kEvents || wait == Wait::kNetwork ||
         wait == Wait::kChild;
}

/// Another thread holds the GIL, asleep, from one look to the next. Who waits for the GIL wakes up 200 times a second,
/// which is no movement.
bool waits_for_gil(const RankLook& before, const RankLook& now) {
  if (before.processes.empty() || before.processes.front().threads.empty()) return false;
  const auto& main = now.processes.front().threads.front();
  const auto* holder = gil_holder(now.processes.front());
  const auto* former = gil_holder(before.processes.front());
  return main.wait == Wait::kLock && holder != nullptr && holder != &main && holder->wait != Wait::kNothing &&
         former != nullptr && former->tid == holder->tid;
}

/// What holds a rank that has stopped, if it is not the line of its main thread alone.
void look_behind(RankStanding& standing, const RankLook& now) {
  const auto& process = now.processes.front();
  const auto& main = process.threads.front();
  const auto library = library_frames(main);
  const auto* holder = gil_holder(process);
  if (holder != nullptr && holder != &main && main.wait == Wait::kLock) {
    standing.doing = fmt::format("waits for the GIL, which {} holds{}", name_thread(*holder, main), at_place(*holder));
    standing.hard = true;
    if (standing.own_frames.empty()) place(standing, *holder, "");
    return;
  }
  if (waits_for_threads(library, main)) {
    standing.doing = "waits at its end for a thread";
    const auto* thread = working_thread(process);
    standing.hard = thread == nullptr || !is_purposely(thread->wait);
    standing.on_purpose = !standing.hard;
    if (thread != nullptr) {
      standing.doing = fmt::format("waits at its end for {}, which {}{}", name_thread(*thread, main),
                                   with_wait(*thread, library_frames(*thread)), at_place(*thread));
      place(standing, *thread, "");
    }
    return;
  }
  standing.on_purpose = main.wait == Wait::kLock && has_transferring_thread(process);
  const bool loads = any_in(library, "/torch/utils/data/dataloader.py");
  const bool has_child =
      main.wait == Wait::kChild || any_in(library, "/multiprocessing/") || any_in(library, "/concurrent/");
  if (!loads && !has_child) return;
  if (loads) standing.doing = "waits for its DataLoader";
  const auto* child = working_child(now);
  standing.hard |= loads && (child == nullptr || !is_purposely(child->threads.front().wait));
  if (loads && !standing.hard) standing.on_purpose = true;
  if (child == nullptr) return;
  const auto& worker = child->threads.front();
  const auto did = worker.wait == Wait::kNothing ? std::string("is busy") : with_wait(worker, library_frames(worker));
  standing.doing = fmt::format("waits for {} {}, which {}{}", loads ? "its DataLoader's worker" : "process", child->pid,
                               did, at_place(worker));
}

std::string busy_words(const Pace& pace) {
  auto words = std::string(pace.share > kBusyShare ? "is busy" : "goes on");
  if (pace.bytes > kBusyBytes) words += fmt::format(", reads and writes {}", rate(pace.bytes));
  return words;
}

/// "0-16, 18-31".
std::string runs_of(const std::vector<Rank>& ranks) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    auto last = i;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    if (++runs > kMostRuns) return text + fmt::format(" and {} more", ranks.size() - i);
    const auto* comma = text.empty() ? "" : ", ";
    if (last == i) text += fmt::format("{}{}", comma, ranks[i].value);
    if (last == i + 1) text += fmt::format("{}{}, {}", comma, ranks[i].value, ranks[last].value);
    if (last > i + 1) text += fmt::format("{}{}-{}", comma, ranks[i].value, ranks[last].value);
    i = last + 1;
  }
  return text;
}

std::vector<Rank> ranks_of(const std::vector<RankStanding>& standings) {
  std::vector<Rank> result;
  for (const auto& standing : standings) result.push_back(standing.rank);
  return result;
}

std::vector<RankStanding> those(const std::vector<RankStanding>& all, Activity activity) {
  std::vector<RankStanding> result;
  std::ranges::copy_if(all, std::back_inserter(result), [=](const auto& one) { return one.activity == activity; });
  return result;
}

/// Where more than half are at one line and wait for a lock, they wait for the others there: work.wait() leaves no
/// frame that says so. C++ leaves no frame at all: those without any are at one place.
void take_most_for_waiting(std::vector<RankStanding>& ranks) {
  if (std::ranges::any_of(ranks, [](const auto& one) { return one.activity == Activity::kWaits; })) return;
  std::map<std::string, std::size_t> counts;
  for (const auto& one : ranks) {
    if (one.activity == Activity::kBlocked && one.doing.starts_with("waits")) ++counts[one.line];
  }
  for (auto& one : ranks) {
    const bool with_most = one.activity == Activity::kBlocked && counts[one.line] * 2 > ranks.size();
    if (with_most && counts[one.line] < ranks.size()) one.activity = Activity::kWaits;
  }
}

/// The words for where several ranks are: the place that most of them share.
std::string common_place(const std::vector<RankStanding>& ranks) {
  std::map<std::string, std::size_t> counts;
  for (const auto& one : ranks) ++counts[one.place];
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

std::string key_of(const std::vector<RankStanding>& culprits) {
  std::string key;
  for (const auto& one : culprits) key += fmt::format("{} {};", one.rank.value, one.line);
  return key;
}

class Assessment {
 public:
  Assessment(std::vector<RankStanding> ranks, const std::vector<Rank>& ended_well, bool joined, const Policy& policy)
      : ranks_(std::move(ranks)), ended_well_(ended_well), joined_(joined), policy_(policy) {
    take_most_for_waiting(ranks_);
    waiting_ = those(ranks_, Activity::kWaits);
  }

  Standing make() {
    const auto busy = those(ranks_, Activity::kBusy);
    std::vector<RankStanding> others;
    std::ranges::copy_if(ranks_, std::back_inserter(others),
                         [](const auto& one) { return one.activity != Activity::kWaits; });
    const auto blocked = those(ranks_, Activity::kBlocked);
    const bool transfers = std::ranges::any_of(waiting_, &RankStanding::transfers);
    if (!waiting_.empty() && !others.empty()) {
      const auto& first = blocked.empty() ? others : blocked;
      const bool stuck = busy.empty() && !blocked.empty();
      return for_culprits(stuck ? Standing::Kind::kStuck : Standing::Kind::kWaiting, busy.empty() ? first : others);
    }
    if (!waiting_.empty() && !transfers) return all_wait();
    if (waiting_.empty() && busy.empty() && !blocked.empty()) return nobody_waits(blocked);
    std::vector<RankStanding> hungry;
    std::ranges::copy_if(ranks_, std::back_inserter(hungry), &RankStanding::needs_data);
    if (waiting_.empty() && busy.empty() && !hungry.empty()) return all_need_data(hungry);
    return {};
  }

 private:
  Standing for_culprits(Standing::Kind kind, const std::vector<RankStanding>& culprits) const {
    return {kind,
            ranks_of(culprits),
            ranks_of(waiting_),
            name_many(ranks_of(waiting_), policy_),
            in_place(common_place(waiting_)) + " for " + describe(culprits),
            key_of(culprits)};
  }

  /// "rank 2 in load (data.py:41), which waits for a lock"; of several, what the first of them does.
  [[nodiscard]] std::string describe(const std::vector<RankStanding>& culprits) const {
    const auto& first = culprits.front();
    const auto who = name_many(ranks_of(culprits), policy_);
    const auto where = in_place(first.place);
    if (culprits.size() == 1) return fmt::format("{}{}, which {}", who, where, first.doing);
    const bool same = std::ranges::all_of(culprits, [&](const auto& one) { return one.place == first.place; });
    const auto whose = name_ranks({first.rank}, policy_.node_of_rank, policy_.node_names);
    return same && !where.empty() ? fmt::format("{}{}; {} {}", who, where, whose, first.doing)
                                  : fmt::format("{}; {}{} {}", who, whose, where, first.doing);
  }

  Standing all_wait() const {
    const auto where = in_place(common_place(waiting_));
    Standing standing{Standing::Kind::kStuck, {}, ranks_of(waiting_), name_many(ranks_of(waiting_), policy_), {}, {}};
    if (!ended_well_.empty()) {
      standing.culprits = ended_well_;
      standing.rest = fmt::format("{} for {}, which {} ended well", where, name_many(ended_well_, policy_),
                                  ended_well_.size() == 1 ? "has" : "have");
      standing.key = "ended";
      return standing;
    }
    if (ranks_.size() < 2) return {};
    std::vector<RankStanding> few, most;
    const auto common = common_place(waiting_);
    for (const auto& one : waiting_) (one.place == common ? most : few).push_back(one);
    standing.key = key_of(few);
    if (few.empty()) {
      standing.rest =
          where + " for each other: are their tensors and groups the same, does the network carry their data?";
      return standing;
    }
    standing.culprits = ranks_of(few);
    standing.who = name_many(standing.culprits, policy_);
    standing.rest = fmt::format("{}, and {}{}", in_place(common_place(few)), name_many(ranks_of(most), policy_), where);
    return standing;
  }

  /// Data workers may be slow, or out of reach: that is no standstill.
  Standing all_need_data(const std::vector<RankStanding>& hungry) const {
    const auto& doing = hungry.front().doing;
    const auto why = doing.find(": ");
    const auto* whose = hungry.size() == 1 ? "its" : "their";
    return {Standing::Kind::kWaiting,
            {},
            ranks_of(hungry),
            name_many(ranks_of(hungry), policy_),
            fmt::format("{} for {} data{}", in_place(common_place(hungry)), whose,
                        why == std::string::npos ? std::string() : doing.substr(why)),
            "data " + key_of(hungry)};
  }

  /// Programs that serve wait for locks and threads, too: these are ranks of one training, or wait for what nobody
  /// waits for on purpose.
  Standing nobody_waits(const std::vector<RankStanding>& blocked) const {
    const bool hard = std::ranges::any_of(blocked, &RankStanding::hard);
    if (!hard && !joined_) return {};
    return {Standing::Kind::kStuck, ranks_of(blocked), {}, {}, describe(blocked), key_of(blocked)};
  }

  std::vector<RankStanding> ranks_;
  const std::vector<Rank>& ended_well_;
  bool joined_;
  const Policy& policy_;
  std::vector<RankStanding> waiting_;
};

RankStanding judge_as_named(const RankLook& before, const RankLook& now) {
  RankStanding standing;
  standing.rank = now.rank;
  if (now.processes.empty() || now.processes.front().threads.empty()) return standing;
  const auto& main = now.processes.front().threads.front();
  const auto library = library_frames(main);
  const auto call = collective_of(library);
  const auto pace = pace_of(before, now);
  place(standing, main, call);
  const bool stopped = main.wait == Wait::kStopped;
  if (!call.empty() && !stopped && !pace.other_line) {
    standing.activity = Activity::kWaits;
    standing.transfers = pace.share > kTransferShare || pace.switches > kLiveSwitches;
    standing.doing = "waits";
    return standing;
  }
  const bool live = pace.share > kBusyShare || pace.bytes > kBusyBytes || pace.other_line;
  if (live && !stopped) {
    standing.doing = busy_words(pace);
    return standing;
  }
  standing.needs_data = any_in(library, "/taas/") || std::ranges::any_of(library, is_of_data_loader);
  if (is_in_debugger(main) || standing.needs_data) {
    standing.activity = Activity::kPurposely;
    standing.doing = is_in_debugger(main) ? "is in a debugger" : "waits for its data";
    return standing;
  }
  standing.doing = main.wait == Wait::kNothing ? "goes on" : with_wait(main, library);
  standing.hard = stopped || main.wait == Wait::kDisk || main.wait == Wait::kPipe || main.wait == Wait::kFile ||
                  (main.holds_gil && main.wait != Wait::kNothing);
  look_behind(standing, now);
  const bool lives =
      pace.switches > kLiveSwitches && main.wait != Wait::kTime && !stopped && !waits_for_gil(before, now);
  if (main.wait == Wait::kNothing || lives) {
    standing.doing = "goes on";
    return standing;
  }
  const bool purposely = (is_purposely(main.wait) || standing.on_purpose) && !standing.hard;
  standing.activity = purposely ? Activity::kPurposely : Activity::kBlocked;
  return standing;
}

}  // namespace

bool is_own_file(std::string_view file) {
  constexpr std::array<std::string_view, 5> kForeign{"/site-packages/", "/dist-packages/", "/lib/python3",
                                                     "/python/taas/", "/python/preload/"};
  return !file.empty() && !file.starts_with('<') &&
         std::none_of(kForeign.begin(), kForeign.end(), [&](std::string_view part) { return contains(file, part); });
}

/// What ranks call their files, functions and threads does nothing to a terminal.
RankStanding judge(const RankLook& before, const RankLook& now) {
  auto standing = judge_as_named(before, now);
  for (auto* text : {&standing.place, &standing.line, &standing.doing}) *text = printable(*text);
  return standing;
}

std::optional<WorkerStanding> judge_data_worker(const RankLook& before, const RankLook& now) {
  const auto pace = pace_of(before, now);
  for (const auto& process : now.processes) {
    for (const auto& thread : process.threads) {
      // Below its own functions are those of the package, and below these perhaps what the user's program began.
      const auto own = std::ranges::find_if(thread.frames, is_own);
      const auto package =
          std::ranges::find_if(thread.frames, [](const SeenFrame& frame) { return contains(frame.file, "/taas/"); });
      if (own == thread.frames.end() || package <= own) continue;
      const bool busy = pace.share > kBusyShare || pace.bytes > kBusyBytes || thread.wait == Wait::kNothing;
      const auto doing = busy ? std::string("is busy") : with_wait(thread, library_frames(thread));
      return WorkerStanding{printable(fmt::format("{} {} at {}", now.data_worker, doing, line_of(*own))),
                            !busy && !is_purposely(thread.wait)};
    }
  }
  return std::nullopt;
}

void explain_wait_for_data(std::vector<RankStanding>& ranks, const std::vector<WorkerStanding>& workers) {
  if (workers.empty()) return;
  const auto blocked = std::ranges::find_if(workers, &WorkerStanding::blocked);
  const bool stuck = blocked != workers.end();
  for (auto& one : ranks) {
    if (!one.needs_data || one.activity != Activity::kPurposely) continue;
    one.doing = fmt::format("waits for its data: {}", stuck ? blocked->text : workers.front().text);
    one.hard = stuck;
    if (stuck) one.activity = Activity::kBlocked;
  }
}

Standing assess(const std::vector<RankStanding>& ranks, const std::vector<Rank>& ended_well, bool joined,
                const Policy& policy) {
  if (ranks.empty()) return {};
  return Assessment(ranks, ended_well, joined, policy).make();
}

std::string Standing::text(std::optional<Duration> waited) const {
  if (who.empty()) return rest;
  const bool one = who.starts_with("rank ");
  if (waited) return fmt::format("{} {} waited {}{}", who, one ? "has" : "have", in_words(*waited), rest);
  return fmt::format("{} {}{}", who, one ? "waits" : "wait", rest);
}

std::string in_place(const std::string& place) {
  if (place.empty()) return {};
  return (place.ends_with(')') ? " in " : " at ") + place;
}

std::string in_words(Duration duration) {
  const auto total = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  const auto hours = total / 3600, minutes = total / 60 % 60, rest = total % 60;
  if (hours > 0) return minutes > 0 ? fmt::format("{} h {} min", hours, minutes) : fmt::format("{} h", hours);
  if (minutes > 0) return rest > 0 ? fmt::format("{} min {} s", minutes, rest) : fmt::format("{} min", minutes);
  return fmt::format("{} s", rest);
}

std::string name_many(const std::vector<Rank>& ranks, const Policy& policy) {
  if (ranks.size() <= kMostNamedByNode && !policy.node_of_rank.empty()) {
    return name_ranks(ranks, policy.node_of_rank, policy.node_names);
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", runs_of(ranks));
}

}  // namespace taas::run
