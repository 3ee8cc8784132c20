#include "training/ddp/parameter_check.hpp"

#include <algorithm>
#include <sstream>

#include "taas/error.hpp"
#include "training/group/rank_texts.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<std::string> describe_parameters(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : parameters) {
    lines.push_back(name + " " + describe(tensor) + ", strides " + describe_shape(tensor.strides()));
  }
  return lines;
}

std::string first_difference(const std::vector<std::string>& first, const std::vector<std::string>& theirs, int rank) {
  const auto on_rank = " on rank " + std::to_string(rank);
  for (std::size_t i = 0; i < std::min(first.size(), theirs.size()); ++i) {
    if (first[i] != theirs[i]) {
      return "parameters differ between ranks: " + first[i] + " on rank 0, but " + theirs[i] + on_rank;
    }
  }
  if (first.size() == theirs.size()) return "";
  const auto& longer = first.size() > theirs.size() ? first : theirs;
  return "parameters differ between ranks: " + std::to_string(first.size()) + " on rank 0, but " +
         std::to_string(theirs.size()) + on_rank + "; the first of one side alone is " +
         longer[std::min(first.size(), theirs.size())];
}

void check_same_parameters(const ProcessGroup& group, const std::vector<NamedTensor>& parameters) {
  const auto mine = describe_parameters(parameters);
  const auto first = split(broadcast_text(group, join(mine)));
  const auto difference = first_text(group, first_difference(first, mine, group.rank()));
  if (!difference.empty()) throw InvalidArgument(difference);
}

}  // namespace taas
