#include "run/events/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace taas::run {
namespace {

constexpr std::size_t kMostNamedNodes = 4;

std::string list(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (Rank rank : ranks) numbers.push_back(rank.value);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::string list_by_node(const std::vector<Rank>& ranks, const std::vector<NodeIndex>& node_of_rank,
                         const std::vector<std::string>& names) {
  std::map<NodeIndex, std::vector<Rank>> groups;
  for (Rank rank : ranks) groups[node_of_rank.at(static_cast<std::size_t>(rank.value))].push_back(rank);
  std::vector<std::string> parts;
  for (const auto& [node, members] : groups) {
    parts.push_back(
        fmt::format(fmt::runtime(names.empty() ? "{} ({})" : "{} on {}"), list(members), name_node(node, names)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

bool one_node(const std::vector<NodeIndex>& node_of_rank) {
  return std::all_of(node_of_rank.begin(), node_of_rank.end(),
                     [&](NodeIndex node) { return node == node_of_rank.front(); });
}

std::string name_node(NodeIndex node, const std::vector<std::string>& node_names) {
  auto index = static_cast<std::size_t>(node.value);
  bool named = index < node_names.size() && !node_names[index].empty();
  return named ? fmt::format("node {} ({})", node.value, node_names[index]) : fmt::format("node {}", node.value);
}

std::string name_nodes(const std::vector<NodeIndex>& nodes, const std::vector<std::string>& names) {
  if (nodes.size() > kMostNamedNodes) return fmt::format("{} nodes", nodes.size());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto text = fmt::format("node {}{}{}{}", nodes[i].value, names[i].empty() ? "" : " (", names[i],
                            names[i].empty() ? "" : ")");
    parts.push_back(nodes[i].value < 0 ? names[i] : std::move(text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string name_ranks(const std::vector<Rank>& ranks, const std::vector<NodeIndex>& node_of_rank,
                       const std::vector<std::string>& node_names) {
  auto text = one_node(node_of_rank) ? list(ranks) : list_by_node(ranks, node_of_rank, node_names);
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", text);
}

std::string shorten(std::string_view text, std::size_t limit) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= limit) return std::string(text);
  auto end = limit - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kCut);
}

}  // namespace taas::run
