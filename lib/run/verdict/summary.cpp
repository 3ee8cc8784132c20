#include "run/verdict/summary.hpp"

#include <fmt/format.h>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxSummaryLength = 160;

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

std::string node_with_host(NodeIndex node, const std::string& host) {
  return host.empty() ? fmt::format("node {}", node.value) : fmt::format("node {} ({})", node.value, host);
}

}  // namespace

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

std::string describe(const NodeLost& lost) {
  return fmt::format("{} was lost: {}", node_with_host(lost.node, lost.name), lost.reason);
}

std::string describe(const NodeLeaves& leaving) {
  return fmt::format("{} leaves the run: it was told to stop by {}", node_with_host(leaving.node, leaving.name),
                     signal_name(leaving.signal));
}

}  // namespace taas::run
