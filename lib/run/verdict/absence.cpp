#include "run/verdict/absence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/events/words.hpp"
#include "run/verdict/culprit.hpp"
#include "run/verdict/peer_loss.hpp"

namespace taas::run {
namespace {

/// "train.py:31", of the frame of the user's that is nearest to the error; empty: it is not known.
std::string line_of(const FatalError& error) {
  if (error.kind != FatalError::Kind::kPython || error.frames.empty()) return {};
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const std::string_view where = error.frames.front().front();
  const auto begin = where.find(kFile), end = where.find(kLine);
  if (begin == where.npos || end == where.npos) return {};
  auto file = where.substr(begin + kFile.size(), end - begin - kFile.size());
  auto line = where.substr(end + kLine.size());
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line.substr(0, line.find(',')));
}

/// Who has waited, where, and who has not.
struct WaitingSides {
  std::map<std::string, std::vector<Rank>> waited;  // by line
  std::vector<Rank> all_waited;
  std::vector<Rank> ended_well;
  std::vector<Rank> went_on;
};

bool had_failed(const RankRecord& record, const FatalError& error, const GenerationRecord& generation) {
  if (record.raised() || (record.failed() && !record.ended_after_stop)) return true;
  const auto told = record.evidence.first_error_at;
  return error.kind != FatalError::Kind::kNone && told != Instant{} && generation.stopped_at() &&
         told <= *generation.stopped_at();
}

std::optional<WaitingSides> sides_of(const GenerationRecord& generation) {
  WaitingSides sides;
  for (int number = 0; number < static_cast<int>(generation.ranks().size()); ++number) {
    const Rank rank{number};
    const auto& record = generation.rank(rank);
    if (record.lost || record.spawn_failed) return std::nullopt;
    const auto error = record.raised() ? find_raised(*record.lingering) : find_fatal_error(record.evidence);
    if (record.succeeded() && !record.ended_after_stop) {
      sides.ended_well.push_back(rank);
    } else if (!had_failed(record, error, generation)) {
      sides.went_on.push_back(rank);
    } else if (error.only_lost_a_peer()) {
      sides.waited[line_of(error)].push_back(rank);
      sides.all_waited.push_back(rank);
    } else {
      return std::nullopt;  // it has a reason of its own
    }
  }
  return sides;
}

std::string at_line(const std::string& line) { return line.empty() ? std::string() : " at " + line; }

/// The line where most wait.
std::string common_line(const WaitingSides& sides) {
  return std::ranges::max_element(sides.waited, {}, [](const auto& entry) { return entry.second.size(); })->first;
}

/// Fewer than half of those that waited did so at a line of their own.
std::optional<Hang> elsewhere(const WaitingSides& sides, const Policy& policy) {
  if (sides.waited.size() != 2 || sides.waited.begin()->first.empty()) return std::nullopt;
  auto few = sides.waited.begin(), most = std::next(few);
  if (few->second.size() > most->second.size()) std::swap(few, most);
  if (few->second.size() == most->second.size()) return std::nullopt;
  auto names = [&](const std::vector<Rank>& ranks) {
    return name_ranks(ranks, policy.node_of_rank, policy.node_names);
  };
  return Hang{few->second,
              fmt::format("{} waited{}, where {} waited{}, in vain", names(few->second), at_line(few->first),
                          names(most->second), at_line(most->first)),
              {}};
}

}  // namespace

bool only_waited_in_vain(const GenerationRecord& generation) {
  bool until_a_time = false;
  for (const auto& record : generation.ranks()) {
    if (!record.failed()) continue;
    if (record.lost || record.spawn_failed) return false;
    const auto error = record.raised() ? find_raised(*record.lingering) : find_fatal_error(record.evidence);
    const auto text = error.text();
    if (!error.only_lost_a_peer() || names_lost_peer(text)) return false;
    until_a_time |= tells_of_timeout(text) || tells_of_store_timeout(text) || waited_at_monitored_barrier(text);
  }
  return until_a_time;
}

std::optional<Hang> find_absence(const GenerationRecord& generation, const Policy& policy) {
  auto sides = sides_of(generation);
  if (!sides || sides->all_waited.empty()) return std::nullopt;
  auto names = [&](const std::vector<Rank>& ranks) {
    return name_ranks(ranks, policy.node_of_rank, policy.node_names);
  };
  const auto where = at_line(common_line(*sides));
  const auto missing = generation.not_joined();
  if (!missing.empty() && missing.size() < generation.ranks().size()) {
    return Hang{missing,
                fmt::format("{} never joined, and {} waited for {} in vain{}", names(missing), names(sides->all_waited),
                            missing.size() == 1 ? "it" : "them", where),
                {}};
  }
  if (!sides->ended_well.empty()) {
    return Hang{sides->ended_well,
                fmt::format("{} had ended well, and {} waited for {} in vain{}", names(sides->ended_well),
                            names(sides->all_waited), sides->ended_well.size() == 1 ? "it" : "them", where),
                {}};
  }
  // Within the moment that they had, those that wait for the same notice that the first has gone.
  if (!sides->went_on.empty() && sides->went_on.size() < generation.ranks().size()) {
    const bool one = sides->went_on.size() == 1;
    return Hang{sides->went_on,
                fmt::format("{} did not come, and {} waited for {} in vain{}", names(sides->went_on),
                            names(sides->all_waited), one ? "it" : "them", where),
                {}};
  }
  return elsewhere(*sides, policy);
}

}  // namespace taas::run
