#include "training/backend/c10_error.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

namespace taas {
namespace {

/// Our name of what c10d calls an operation.
std::string operation_called(std::string name) {
  static const std::map<std::string, std::string> kNames{{"ALLREDUCE", "all_reduce"},
                                                         {"ALLGATHER", "all_gather"},
                                                         {"_ALLGATHER_BASE", "all_gather"},
                                                         {"REDUCE_SCATTER", "reduce_scatter"},
                                                         {"_REDUCE_SCATTER_BASE", "reduce_scatter"}};
  const auto known = kNames.find(name);
  if (known != kNames.end()) return known->second;
  for (auto& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

/// What two ranks do, from the 700 letters of c10d's comparison: "rank 0: all_reduce (4) Float; rank 1: …".
std::string ranks_that_differ(const std::string& text) {
  static const std::regex kRank(
      "[Rr]ank ([0-9]+) is running collective: CollectiveFingerPrint\\([^)]*?OpType=(\\w+)"
      "(?:, TensorShape=\\[([^\\]]*)\\])?(?:, TensorDtypes=(\\w+))?");
  std::map<int, std::string> by_rank;  // each rank has itself first
  for (std::sregex_iterator found(text.begin(), text.end(), kRank), end; found != end; ++found) {
    const auto& part = *found;
    auto& what = by_rank[std::stoi(part[1].str())];
    what = operation_called(part[2].str());
    if (part[4].matched) what += " (" + part[3].str() + ") " + part[4].str();
  }
  std::string ranks;
  for (const auto& [rank, what] : by_rank) {
    ranks += (ranks.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + what;
  }
  return ranks;
}

}  // namespace

std::string one_line(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours ? ours->what_without_backtrace() : error.what();
  // Some messages of libtorch carry the C++ stack trace in their text.
  text = text.substr(0, text.find("\nException raised from"));
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.find("CollectiveFingerPrint") == text.npos) return text;
  const auto ranks = ranks_that_differ(text);
  return ranks.empty() ? text : ranks;
}

}  // namespace taas
