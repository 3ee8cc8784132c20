#include "run/verdict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "run/events/words.hpp"
#include "run/verdict/culprit.hpp"
#include "run/verdict/fatal_error.hpp"
#include "run/verdict/gpu_memory.hpp"
#include "run/verdict/hang.hpp"
#include "run/verdict/hint.hpp"
#include "run/verdict/peer_loss.hpp"
#include "run/verdict/summary.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxReportLines = 12;
constexpr std::size_t kSilentLines = 6;  // of a culprit that said nothing we know
constexpr std::size_t kMostLogsNamed = 2;

Cause find_cause(const RankRecord& record, const FatalError& error, bool by_us) {
  if (record.raised()) return error.timed_out_in_store() ? Cause::kStoreTimeout : Cause::kException;
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
  if (by_us || record.raised()) return 1;
  return record.status.signal == 0 ? record.status.code : 128 + record.status.signal;
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

/// Why the exception alone had not ended the rank.
std::string describe_delay(const RankLingers& lingering, const Policy& policy) {
  auto limit =
      policy.exit_timeout.count() == 0 ? "" : fmt::format(" ({:g} s: --exit-timeout)", seconds(policy.exit_timeout));
  if (lingering.waits_for.empty()) return fmt::format("after its exception its process did not end{}", limit);
  return fmt::format("after its exception its process waited for {}{}", lingering.waits_for, limit);
}

std::string join_hints(std::string first, const std::string& second) {
  return second.empty() ? first : fmt::format("{}; {}", first, second);
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
  const auto& record = generation.rank(culprit.rank);
  if (auto trouble = name_gpu_trouble(record.evidence); !trouble.empty()) hint = trouble;
  if (hint.empty() && record.preloaded && contains(text, "ImportError")) {
    hint = "the rank came from a Python that had imported torch; --preload none starts each of them afresh";
  }
  if (record.raised()) hint = join_hints(describe_delay(*record.lingering, policy), hint);
  bool deserted = culprit.strength == Strength::kLostPeer && somebody_finished_early(generation);
  if (hint.empty() && deserted) return "other ranks had already ended well: all have to take part in each collective";
  return hint;
}

std::string logs_of(const std::vector<Rank>& ranks, const GenerationRecord& generation) {
  std::string logs;
  for (Rank rank : ranks) {
    const auto& path = generation.rank(rank).evidence.stderr_path;
    if (!path.empty()) logs += (logs.empty() ? "" : ", ") + path;
  }
  return logs;
}

/// Who waited in vain has said so: the cause lies with one of the others. A rank that came late finds its peers gone,
/// and so does one that waited for a rank that timed out, so that these are named only where nobody else is left. The
/// culprit may be one that says something else of its own timeout. Empty: no rank has timed out.
std::string name_who_did_not_time_out(const GenerationRecord& generation, const Policy& policy, Rank culprit) {
  std::vector<Rank> who_did;
  std::vector<Rank> others;
  std::vector<Rank> victims;
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    const auto& record = generation.rank(Rank{rank});
    const auto told = tells_of_others(record);
    if (told == OfOthers::kLate) {
      who_did.push_back(Rank{rank});
    } else if (Rank{rank} != culprit) {
      (!record.ended_after_stop && told == OfOthers::kGone ? victims : others).push_back(Rank{rank});
    }
  }
  if (who_did.empty()) return {};
  if (others.empty()) others = std::move(victims);
  const bool reported = std::ranges::find(who_did, culprit) != who_did.end();
  if (others.empty()) return reported ? "all ranks timed out: they wait for each other, or the network is down" : "";
  auto text = fmt::format("{}{} did not time out",
                          reported ? "" : fmt::format("{} timed out in a collective; ", name_some(who_did, policy)),
                          name_some(others, policy));
  others.resize(std::min(others.size(), kMostLogsNamed));
  auto logs = logs_of(others, generation);
  return logs.empty() ? text : fmt::format("{}: see what came last in {}", text, logs);
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

OfOthers tells_of_others(const RankRecord& record) {
  if (!record.failed()) return OfOthers::kNothing;
  const auto error = find_fatal_error(record.evidence);
  if (tells_of_timeout(error.text())) return OfOthers::kLate;
  return only_lost_a_peer(record, error, false) ? OfOthers::kGone : OfOthers::kNothing;
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
  const auto& evidence = record.raised() ? record.lingering->evidence : record.evidence;
  verdict.log_path = evidence.stderr_path;
  verdict.error_file = evidence.error_file;
  verdict.at = culprit.cause_at;
  if (verdict.cause == Cause::kException) verdict.raised = culprit.error.raised();
  list_others(generation, verdict);
  verdict.hint = hint_for(culprit, generation, policy, verdict);
  verdict.detail = excerpt(culprit.error, room_for_detail(verdict, culprit.error));
  bool lost = culprit.strength == Strength::kLostPeer || culprit.strength == Strength::kNamesPeer;
  bool in_vain = lost && tells_of_timeout(culprit.error.text());
  auto hang = in_vain ? find_hang(generation, policy) : std::nullopt;
  if (hang) return judge_hang(std::move(verdict), std::move(*hang), generation, policy);
  if (verdict.hint.empty()) verdict.hint = name_who_did_not_time_out(generation, policy, culprit.rank);
  return verdict;
}

namespace {

/// Of those that lingered when the run was stopped, the one that had failed for certain, and first.
std::optional<Rank> first_lingering(const GenerationRecord& generation) {
  std::optional<Rank> first;
  for (int number = 0; number < static_cast<int>(generation.ranks().size()); ++number) {
    const auto& record = generation.rank(Rank{number});
    if (!record.lingering || (record.ended() && !record.ended_after_stop)) continue;
    auto key = [](const RankRecord& of) { return std::pair(!of.raised(), of.raised_at()); };
    if (!first || key(record) < key(generation.rank(*first))) first = Rank{number};
  }
  return first;
}

}  // namespace

namespace {

/// That all of them are in.
std::string folder_of_logs(const GenerationRecord& generation) {
  std::string common;
  for (const auto& record : generation.ranks()) {
    const auto& path = record.evidence.stderr_path;
    if (path.empty()) continue;
    if (common.empty()) common = path;
    common.erase(std::ranges::mismatch(common, path).in1, common.end());
  }
  return common.substr(0, common.find_last_of('/') + 1);
}

}  // namespace

Verdict judge_stop(const GenerationRecord& generation, const Policy& policy, int signal, Instant at) {
  Verdict verdict;
  verdict.cause = Cause::kStopped;
  verdict.generation = generation.generation();
  verdict.summary = fmt::format("stopped by {}", signal_name(signal));
  verdict.exit_code = 128 + signal;
  verdict.at = at;
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    if (generation.rank(Rank{rank}).ended_after_stop) verdict.stopped.push_back(Rank{rank});
  }
  verdict.log_path = folder_of_logs(generation);
  if (auto lingering = first_lingering(generation)) {
    const auto& evidence = generation.rank(*lingering).lingering->evidence;
    auto error = find_raised(*generation.rank(*lingering).lingering);
    verdict.summary = summarize_stop(signal, *lingering, generation, policy);
    verdict.culprit = *lingering;
    verdict.node = node_of(*lingering, policy);
    verdict.log_path = evidence.stderr_path;
    verdict.detail = excerpt(error, room_for_detail(verdict, error));
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
