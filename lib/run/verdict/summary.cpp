#include "run/verdict/summary.hpp"

#include <fmt/format.h>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxSummaryLength = 160;
constexpr std::size_t kMaxErrorLength = 100;  // with other words around it
constexpr std::size_t kMostNames = 8;         // of ranks in one line
constexpr auto kInMinutes = std::chrono::minutes(2);

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

/// What it said, or words for one whose words are not known here.
std::string error_of(const RankLingers& lingering) {
  auto error = find_raised(lingering);
  bool known = error.kind == FatalError::Kind::kPython && !error.statement.empty();
  return known ? shorten(error.statement.front(), kMaxErrorLength) : "an exception";
}

std::string in_words(Duration since) {
  auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  if (whole < kInMinutes) return fmt::format("{} s", whole.count());
  return fmt::format("{} min", std::chrono::duration_cast<std::chrono::minutes>(whole).count());
}

}  // namespace

std::string name_some(const std::vector<Rank>& ranks, const Policy& policy) {
  if (ranks.size() > kMostNames) return fmt::format("{} ranks", ranks.size());
  return name_ranks(ranks, policy.node_of_rank, policy.node_names);
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
      if (culprit.error.kind == FatalError::Kind::kNone) return fmt::format("{} raised an exception", who);
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

std::string describe(const RankLingers& lingering, const Policy& policy) {
  auto who = name_ranks({lingering.rank}, policy.node_of_rank, policy.node_names);
  auto error = error_of(lingering);
  if (lingering.state == Lingering::kSilent) {
    return fmt::format("{} printed {} and has done nothing since; it may have failed, and has not ended", who, error);
  }
  auto why = lingering.waits_for.empty() ? "" : fmt::format(": waits for {}", lingering.waits_for);
  return fmt::format("{} raised {} and has not ended{}", who, error, why);
}

std::string describe_stragglers(const GenerationRecord& generation, const Policy& policy, Duration since) {
  auto living = generation.living();
  return fmt::format("{} ended well {} ago; {} {} not ended",
                     name_some(generation.in(RankRecord::Phase::kEnded), policy), in_words(since),
                     name_some(living, policy), living.size() == 1 ? "has" : "have");
}

std::string summarize_stop(int signal, Rank rank, const GenerationRecord& generation, const Policy& policy) {
  const auto& lingering = *generation.rank(rank).lingering;
  auto who = name_ranks({rank}, policy.node_of_rank, policy.node_names);
  auto did = lingering.state == Lingering::kFailed ? "raised {} and not ended" : "printed {} and done nothing since";
  return fmt::format("{} had {} when the run was stopped by {}", who,
                     fmt::format(fmt::runtime(did), error_of(lingering)), signal_name(signal));
}

std::string describe(const NodeLost& lost) {
  return fmt::format("{} was lost: {}", name_nodes({lost.node}, {lost.name}), lost.reason);
}

std::string describe(const NodeLeaves& leaving) {
  return fmt::format("{} leaves the run: it was told to stop by {}", name_nodes({leaving.node}, {leaving.name}),
                     signal_name(leaving.signal));
}

}  // namespace taas::run
