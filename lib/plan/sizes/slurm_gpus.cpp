#include "plan/sizes/slurm_gpus.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "plan/launch_mode/nodelist.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

/// At commas, of which those in parentheses are part of an index: "gpu:2(IDX:0,3),nic:1(IDX:0)".
std::vector<std::string_view> split_resources(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// The count of "gpu:8(IDX:0-7)" and "gpu:a100:4(IDX:0-3)"; 0 of another resource.
int gpus_of(std::string_view resource) {
  auto name = resource.substr(0, resource.find('('));
  auto words = split(name, ':');
  if (words.size() < 2 || words.front() != "gpu") return 0;
  return std::max(0, parse_integer(words.back()).value_or(0));
}

int add_up(std::string_view resources) {
  int total = 0;
  for (auto resource : split_resources(resources)) total += gpus_of(resource);
  return total;
}

}  // namespace

/// "… Nodes=g0 CPU_IDs=0 Mem=0 GRES=gpu:8(IDX:0-7) Nodes=h0 CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3) …"
std::map<std::string, int> gpus_by_node(std::string_view scontrol) {
  constexpr std::string_view kNodes = "Nodes=", kResources = "GRES=";
  std::map<std::string, int> gpus;
  std::vector<std::string> nodes;
  for (auto line : split(scontrol, '\n')) {
    for (auto word : split(line, ' ')) {
      if (word.starts_with(kNodes)) {
        auto names = expand_nodelist(word.substr(kNodes.size()));
        nodes = names ? std::move(*names) : std::vector<std::string>();
      } else if (word.starts_with(kResources)) {
        int count = add_up(word.substr(kResources.size()));
        for (const auto& node : nodes) gpus[node] = count;
        nodes.clear();
      }
    }
  }
  return gpus;
}

bool needs_gpus_by_node(const Options& options, const SlurmJob& job) {
  bool elsewhere = options.rendezvous.standalone || options.nodes.hosts || options.nodes.hostfile;
  bool only_a_task = job.step && (job.step->node_id > 0 || job.step->local_id > 0);
  if (elsewhere || only_a_task || job.nodes.size() < 2 || job.gpus_are_even) return false;
  bool has_none = !job.this_node.empty() && job.gpus_on_node == 0;
  return !has_none;
}

}  // namespace taas::plan
