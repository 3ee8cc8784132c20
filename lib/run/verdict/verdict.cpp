#include "run/verdict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "run/events/words.hpp"
#include "run/verdict/fatal_error.hpp"
#include "run/verdict/gpu_memory.hpp"
#include "run/verdict/hang.hpp"
#include "run/verdict/hint.hpp"
#include "run/verdict/peer_loss.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxReportLines = 12;
constexpr std::size_t kMaxSummaryLength = 160;
constexpr std::size_t kSilentLines = 6;  // of a culprit that said nothing we know
/// Between raising and exiting a program cleans up. An error that is older may have been survived.
constexpr auto kCleanUp = std::chrono::seconds(10);

/// How well a failure explains the end of the generation.
enum class Strength {
  kNone,       ///< it does not: the launcher stopped the rank
  kLostPeer,   ///< the rank itself says that another one is to blame
  kNamesPeer,  ///< the same, and it says which one
  kLater,      ///< ended after the launcher began to stop, but not in the way a stopped rank ends
  kStruck,     ///< the same, by a signal that nobody here has sent
  kLostNode,   ///< a node that was heard of after the launcher began to stop
  kTold,       ///< had told a fatal error long before it was stopped
  kOwn,        ///< failed by itself
};

struct Candidate {
  Rank rank;
  Strength strength = Strength::kNone;
  Instant cause_at{};
  FatalError error;
  const NodeLost* node = nullptr;  // the culprit is no rank, but a node that went away
};

bool ended_by_us(const RankRecord& record, const GenerationRecord& generation) {
  const auto& status = record.status;
  if (record.spawn_failed || !record.ended_after_stop) return false;
  if (record.ended_after_kill && status.signal == SIGKILL) return true;
  return status.success() || status.signal == generation.stop_signal() || status.code == 128 + generation.stop_signal();
}

bool only_lost_a_peer(const RankRecord& record, const FatalError& error, bool by_us) {
  int signal = record.status.signal;
  if (signal == SIGPIPE) return true;
  bool by_own_will = signal == 0 || signal == SIGABRT || by_us;
  return by_own_will && error.only_lost_a_peer();
}

bool somebody_finished_early(const GenerationRecord& generation) {
  return std::any_of(generation.ranks().begin(), generation.ranks().end(),
                     [](const RankRecord& record) { return record.succeeded() && !record.ended_after_stop; });
}

/// Judges one rank's failure against the others'.
class Judge {
 public:
  explicit Judge(const GenerationRecord& generation)
      : generation_(generation), early_(somebody_finished_early(generation)) {}

  [[nodiscard]] Candidate weigh(Rank rank) const {
    const auto& record = generation_.rank(rank);
    Candidate candidate{rank, Strength::kNone, record.ended_at, {}};
    if (record.lost) return candidate;  // its node is judged
    bool spoke = record.ended_after_stop && record.evidence.first_error_at != Instant{};
    if (!record.failed() && !spoke) return candidate;
    if (record.spawn_failed) {
      // After the stop it cannot be what broke the generation, not even when that was a rank that only lost a peer.
      candidate.strength = record.ended_after_stop ? Strength::kNone : Strength::kOwn;
      return candidate;
    }
    candidate.error = find_fatal_error(record.evidence);
    if (told_in_time(record, candidate.error)) candidate.cause_at = record.evidence.first_error_at;
    candidate.strength = strength(record, candidate.error);
    return candidate;
  }

 private:
  [[nodiscard]] Instant end_of(const RankRecord& record) const {
    return record.ended_after_stop ? *generation_.stopped_at() : record.ended_at;
  }

  /// The rank had told its fatal error before it ended or was stopped, and said nothing else since.
  [[nodiscard]] bool told(const RankRecord& record, const FatalError& error) const {
    auto at = record.evidence.first_error_at;
    return error.kind != FatalError::Kind::kNone && at != Instant{} && at <= end_of(record);
  }

  [[nodiscard]] bool told_in_time(const RankRecord& record, const FatalError& error) const {
    return told(record, error) && end_of(record) - record.evidence.first_error_at <= kCleanUp;
  }

  [[nodiscard]] Strength strength(const RankRecord& record, const FatalError& error) const {
    bool by_us = ended_by_us(record, generation_);
    bool before = !record.ended_after_stop || told(record, error);
    if (only_lost_a_peer(record, error, by_us) && names_lost_peer(error.text())) return Strength::kNamesPeer;
    if (by_us && !before) return Strength::kNone;
    if (only_lost_a_peer(record, error, by_us)) return before ? Strength::kLostPeer : Strength::kNone;
    if (!before && early_) return Strength::kNone;
    if (!before) return record.status.signal == 0 ? Strength::kLater : Strength::kStruck;
    return !record.ended_after_stop || told_in_time(record, error) ? Strength::kOwn : Strength::kTold;
  }

  const GenerationRecord& generation_;
  bool early_;
};

std::string node_with_host(NodeIndex node, const std::string& host) {
  return host.empty() ? fmt::format("node {}", node.value) : fmt::format("node {} ({})", node.value, host);
}

/// A node that was heard of after the stop explains why others had lost a peer, if nothing better does.
Candidate weigh(const NodeLost& lost, const GenerationRecord& generation) {
  bool before = !generation.stopped_at() || lost.last_sign_of_life <= *generation.stopped_at();
  return {Rank{-1}, before ? Strength::kOwn : Strength::kLostNode, lost.last_sign_of_life, {}, &lost};
}

void consider(Candidate candidate, Candidate& culprit) {
  bool stronger = candidate.strength > culprit.strength;
  bool earlier = candidate.strength == culprit.strength && candidate.cause_at < culprit.cause_at;
  if (stronger || (earlier && candidate.strength != Strength::kNone)) culprit = std::move(candidate);
}

Candidate find_culprit(const GenerationRecord& generation) {
  Judge judge(generation);
  Candidate culprit{Rank{-1}, Strength::kNone, {}, {}};
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    consider(judge.weigh(Rank{rank}), culprit);
  }
  for (const auto& lost : generation.lost_nodes()) consider(weigh(lost, generation), culprit);
  return culprit;
}

Cause find_cause(const RankRecord& record, const FatalError& error, bool by_us) {
  if (record.spawn_failed) return Cause::kExecFailed;
  bool killed = record.status.signal == SIGKILL && !by_us;
  const bool by_timer = !record.evidence.expired_timer.empty();
  if (killed && record.evidence.out_of_memory_kill && !by_timer) return Cause::kOutOfMemory;
  if (record.status.signal == 0 && error.timed_out_in_store()) return Cause::kStoreTimeout;
  bool raised = error.kind == FatalError::Kind::kPython;
  if (raised && (by_us || (record.status.signal == 0 && record.status.code == 1))) return Cause::kException;
  return record.status.signal == 0 || by_us ? Cause::kExitCode : Cause::kSignal;
}

/// A rank that had failed by itself before the launcher's signal reached it would have ended with code 1.
int exit_code_of(const RankRecord& record, bool by_us) {
  if (record.spawn_failed) return record.spawn_errno == ENOENT ? 127 : 126;
  if (by_us) return 1;
  return record.status.signal == 0 ? record.status.code : 128 + record.status.signal;
}

std::string describe_store_timeout(const std::string& who, const GenerationRecord& generation, const Policy& policy) {
  auto missing = generation.not_joined();
  bool known = !missing.empty() && missing.size() < generation.ranks().size();
  if (!known) return fmt::format("{} waited for other ranks until the store's timeout", who);
  return fmt::format("{} waited until the store's timeout for {}, which never joined", who,
                     name_ranks(missing, policy.node_of_rank, policy.node_names));
}

/// ": CUDA error: device-side assert triggered", where torch's watchdog was faster than the exception.
std::string gpu_error(std::string_view text) {
  auto begin = text.find("CUDA error: ");
  if (begin == text.npos) return {};
  return fmt::format(": {}", text.substr(begin, text.find_first_of("\n\r", begin) - begin));
}

/// ": its timer "step" had expired", which the launcher serves for the rank.
std::string expired_timer(const Evidence& evidence) {
  return evidence.expired_timer.empty() ? "" : fmt::format(": its timer \"{}\" had expired", evidence.expired_timer);
}

std::string summarize(const Candidate& culprit, Cause cause, const GenerationRecord& generation, const Policy& policy) {
  const auto& record = generation.rank(culprit.rank);
  auto who = name_ranks({culprit.rank}, policy.node_of_rank, policy.node_names);
  switch (cause) {
    case Cause::kExecFailed:
      return record.spawn_message;
    case Cause::kOutOfMemory:
      return fmt::format("{} was killed by the kernel's out-of-memory killer", who);
    case Cause::kStoreTimeout:
      return describe_store_timeout(who, generation, policy);
    case Cause::kException:
      return shorten(fmt::format("{} raised {}", who, culprit.error.statement.front()), kMaxSummaryLength);
    case Cause::kSignal:
      return shorten(fmt::format("{} was killed by {}{}{}", who, signal_name(record.status.signal),
                                 record.status.core_dumped ? " (core dumped)" : "",
                                 record.evidence.expired_timer.empty() ? gpu_error(culprit.error.text())
                                                                       : expired_timer(record.evidence)),
                     kMaxSummaryLength);
    default:
      if (!ended_by_us(record, generation)) {
        return shorten(fmt::format("{} exited with code {}{}", who, record.status.code, expired_timer(record.evidence)),
                       kMaxSummaryLength);
      }
      return shorten(fmt::format("{} failed: {}", who, culprit.error.statement.front()), kMaxSummaryLength);
  }
}

void list_others(const GenerationRecord& generation, Verdict& verdict) {
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    const auto& record = generation.rank(Rank{rank});
    if (Rank{rank} == verdict.culprit || !record.ended() || record.lost) continue;
    if (ended_by_us(record, generation)) {
      verdict.stopped.push_back(Rank{rank});
    } else if (record.failed()) {
      verdict.consequences.push_back(Rank{rank});
    }
  }
}

std::string hint_for(const Candidate& culprit, const GenerationRecord& generation, const Policy& policy,
                     const Verdict& verdict) {
  if (!generation.rank(culprit.rank).evidence.expired_timer.empty()) {
    return "it did not release that timer in time: see what it did instead, or give the timer longer";
  }
  auto gpus = policy.shares_gpus ? Gpus::kShared : Gpus::kOwn;
  auto text = culprit.error.text();
  auto holders = tells_of_full_gpu(text) ? name_gpu_holders(culprit.rank, generation, policy) : std::string();
  auto hint = find_hint(verdict.cause, verdict.status, text, gpus, holders);
  bool deserted = culprit.strength == Strength::kLostPeer && somebody_finished_early(generation);
  if (hint.empty() && deserted) return "other ranks had already ended well: all have to take part in each collective";
  return hint;
}

/// The report is to fit, a restart's announcement included.
std::size_t room_for_detail(const Verdict& verdict, const FatalError& error) {
  std::size_t others = 2;  // the summary, the announcement
  others += !verdict.consequences.empty();
  others += !verdict.stopped.empty();
  others += !verdict.hint.empty();
  others += !verdict.log_path.empty();
  auto room = kMaxReportLines - others;
  return error.kind == FatalError::Kind::kNone ? std::min(room, kSilentLines) : room;
}

Verdict judge_loss(const NodeLost& lost, const GenerationRecord& generation) {
  Verdict verdict;
  verdict.cause = Cause::kNodeLost;
  verdict.node = lost.node;
  verdict.generation = generation.generation();
  verdict.summary = describe(lost);
  verdict.exit_code = 1;
  verdict.at = lost.last_sign_of_life;
  list_others(generation, verdict);
  return verdict;
}

NodeIndex node_of(Rank rank, const Policy& policy) {
  auto index = static_cast<std::size_t>(rank.value);
  return index < policy.node_of_rank.size() ? policy.node_of_rank[index] : NodeIndex{-1};
}

/// `verdict` is about a rank that waited. What the launcher returns is its code: the culprit had none of its own.
Verdict judge_hang(Verdict verdict, Hang hang, const GenerationRecord& generation, const Policy& policy) {
  verdict.cause = Cause::kHang;
  verdict.culprit = hang.culprits.front();
  verdict.node = node_of(verdict.culprit, policy);
  verdict.status = generation.rank(verdict.culprit).status;
  verdict.summary = std::move(hang.summary);
  verdict.detail = std::move(hang.detail);
  verdict.log_path = generation.rank(verdict.culprit).evidence.stderr_path;
  verdict.error_file = generation.rank(verdict.culprit).evidence.error_file;
  verdict.hint = "all ranks have to make the same calls in the same order: see what that rank did instead";
  verdict.consequences.clear();
  verdict.stopped.clear();
  list_others(generation, verdict);
  return verdict;
}

}  // namespace

std::string describe(const NodeLost& lost) {
  return fmt::format("{} was lost: {}", node_with_host(lost.node, lost.name), lost.reason);
}

std::string describe(const NodeLeaves& leaving) {
  return fmt::format("{} leaves the run: it was told to stop by {}", node_with_host(leaving.node, leaving.name),
                     signal_name(leaving.signal));
}

Verdict judge_departure(const NodeLeaves& leaving) {
  Verdict verdict;
  verdict.cause = Cause::kNodeLost;
  verdict.node = leaving.node;
  verdict.generation = leaving.generation;
  verdict.summary = describe(leaving);
  verdict.exit_code = 1;
  verdict.at = leaving.at;
  return verdict;
}

Verdict judge_failure(const GenerationRecord& generation, const Policy& policy) {
  auto culprit = find_culprit(generation);
  Verdict verdict;
  verdict.generation = generation.generation();
  if (culprit.strength == Strength::kNone) return verdict;  // nothing has failed
  if (culprit.node != nullptr) return judge_loss(*culprit.node, generation);
  const auto& record = generation.rank(culprit.rank);
  bool by_us = ended_by_us(record, generation);
  verdict.cause = find_cause(record, culprit.error, by_us);
  verdict.culprit = culprit.rank;
  verdict.node = node_of(culprit.rank, policy);
  verdict.status = record.status;
  verdict.summary = summarize(culprit, verdict.cause, generation, policy);
  verdict.exit_code = exit_code_of(record, by_us);
  verdict.log_path = record.evidence.stderr_path;
  verdict.error_file = record.evidence.error_file;
  verdict.at = culprit.cause_at;
  list_others(generation, verdict);
  verdict.hint = hint_for(culprit, generation, policy, verdict);
  verdict.detail = excerpt(culprit.error, room_for_detail(verdict, culprit.error));
  bool lost = culprit.strength == Strength::kLostPeer || culprit.strength == Strength::kNamesPeer;
  bool in_vain = lost && tells_of_timeout(culprit.error.text());
  if (!in_vain) return verdict;
  auto hang = find_hang(generation, policy);
  return hang ? judge_hang(std::move(verdict), std::move(*hang), generation, policy) : verdict;
}

Verdict judge_stop(const GenerationRecord& generation, int signal, Instant at) {
  Verdict verdict;
  verdict.cause = Cause::kStopped;
  verdict.generation = generation.generation();
  verdict.summary = fmt::format("stopped by {}", signal_name(signal));
  verdict.exit_code = 128 + signal;
  verdict.at = at;
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    if (generation.rank(Rank{rank}).ended_after_stop) verdict.stopped.push_back(Rank{rank});
  }
  return verdict;
}

Verdict judge_success(const GenerationRecord& generation, Instant at) {
  Verdict verdict;
  verdict.generation = generation.generation();
  verdict.at = at;
  return verdict;
}

Verdict judge_missing_nodes(Generation generation, const GatherFailed& event) {
  Verdict verdict;
  verdict.cause = Cause::kNodesMissing;
  verdict.generation = generation;
  verdict.summary = event.summary;
  verdict.hint = event.hint;
  verdict.exit_code = event.exit_code;
  verdict.at = event.at;
  return verdict;
}

Verdict judge_output(Verdict verdict, const std::string& error) {
  verdict.cause = Cause::kOutputFailed;
  verdict.summary = fmt::format("training ended well, but its output is not on disk: {}", error);
  verdict.exit_code = 1;
  return verdict;
}

}  // namespace taas::run
