#include "plan/streams.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

/// A value of -r or -t: which streams of which local ranks.
class StreamChoice {
 public:
  static std::optional<StreamChoice> read(std::string_view text);

  [[nodiscard]] bool has_stdout(int local_rank) const { return (mask_of(local_rank) & 1) != 0; }
  /// -1: it names none.
  [[nodiscard]] int largest_local_rank() const { return by_local_rank_.empty() ? -1 : by_local_rank_.rbegin()->first; }
  [[nodiscard]] bool has_stderr(int local_rank) const { return (mask_of(local_rank) & 2) != 0; }

 private:
  [[nodiscard]] int mask_of(int local_rank) const {
    auto found = by_local_rank_.find(local_rank);
    return found == by_local_rank_.end() ? for_others_ : found->second;
  }

  int for_others_ = 0;  // 1 is stdout, 2 is stderr, 3 is both
  std::map<int, int> by_local_rank_;
};

std::optional<int> read_mask(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return text[0] - '0';
}

std::optional<StreamChoice> StreamChoice::read(std::string_view text) {
  StreamChoice choice;
  if (auto all = read_mask(text)) {
    choice.for_others_ = *all;
    return choice;
  }
  for (auto entry : split(text, ',')) {
    entry = trim(entry);
    auto colon = entry.find(':');
    if (colon == entry.npos) return std::nullopt;
    auto local_rank = parse_integer(entry.substr(0, colon));
    auto mask = read_mask(trim(entry.substr(colon + 1)));
    if (!local_rank || *local_rank < 0 || !mask) return std::nullopt;
    choice.by_local_rank_[*local_rank] = *mask;
  }
  return choice;
}

Result<StreamChoice> read_choice(const char* flag, const std::string& text) {
  if (auto valid = check_stream_choice(text); !valid) {
    return std::move(valid).error().with(fmt::format("{} {}", flag, text));
  }
  return *StreamChoice::read(text);
}

}  // namespace

Result<> check_stream_choice(std::string_view text) {
  if (StreamChoice::read(text)) return {};
  return usage_error("not a choice of streams; 0 is none, 1 stdout, 2 stderr, 3 both, or by local rank: 0:1,1:3");
}

Result<> check_local_ranks(const OutputOptions& options, int most_ranks_on_node) {
  auto check = [most_ranks_on_node](const char* flag, const std::string& value, int largest) -> Result<> {
    if (largest < most_ranks_on_node) return {};
    return usage_error(fmt::format("{} {}: there is no local rank {}; the largest of a node is {}", flag, value,
                                   largest, most_ranks_on_node - 1));
  };
  for (auto [flag, value] : {std::pair("--redirects", &options.redirects), std::pair("--tee", &options.tee)}) {
    auto choice = read_choice(flag, *value);
    if (!choice) return choice.error();
    if (auto there = check(flag, *value, choice->largest_local_rank()); !there) return there;
  }
  const auto& filter = options.local_ranks_filter;
  auto largest = std::max_element(filter.begin(), filter.end());
  if (largest == filter.end()) return {};
  return check("--local-ranks-filter", fmt::format("{}", fmt::join(filter, ",")), *largest);
}

Result<std::vector<RankOutput>> decide_streams(const OutputOptions& options, const std::vector<RankPlace>& ranks) {
  auto redirects = read_choice("--redirects", options.redirects);
  if (!redirects) return redirects.error();
  auto tee = read_choice("--tee", options.tee);
  if (!tee) return tee.error();

  const auto& filter = options.local_ranks_filter;
  std::vector<RankOutput> outputs;
  for (const auto& rank : ranks) {
    int local = rank.local_rank;
    bool chosen = std::find(filter.begin(), filter.end(), local) != filter.end();
    bool by_default = filter.empty() ? rank.rank.value == 0 : chosen;
    RankOutput output;
    if (filter.empty() || chosen) {
      output.stdout_on_console = tee->has_stdout(local) || (by_default && !redirects->has_stdout(local));
      output.stderr_on_console = tee->has_stderr(local) || (by_default && !redirects->has_stderr(local));
    }
    outputs.push_back(output);
  }
  return outputs;
}

}  // namespace taas::plan
