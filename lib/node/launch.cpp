#include "node/launch.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/json/json.hpp"

namespace taas::node {
namespace {

/// Without spares and without nodes that the run could do without, a hole is filled by who left it.
bool places_are_fixed(const plan::LaunchPlan& plan) {
  auto nodes = static_cast<int>(plan.nodes.size());
  return plan.expected_agents == nodes && plan.min_nodes >= nodes;
}

}  // namespace

int most_ranks_of(const Launch& launch, int order) {
  auto place = static_cast<std::size_t>(order);
  return order >= 0 && place < launch.ranks_on_node.size() ? launch.ranks_on_node[place] : launch.most_ranks_on_node;
}

std::string print_launch(const plan::LaunchPlan& plan, const plan::Machine& machine, std::string working_directory,
                         const storage::RunDirectory& folder, std::string data_key, std::string run_mark) {
  Launch launch;
  launch.settings = plan::launch_settings(plan, machine, std::move(working_directory));
  launch.run_folder = folder.path();
  launch.log_folder = folder.log_dir();
  for (const auto& node : plan.nodes) {
    launch.most_ranks_on_node = std::max(launch.most_ranks_on_node, node.local_world_size);
    if (places_are_fixed(plan)) launch.ranks_on_node.push_back(node.local_world_size);
  }
  launch.data_key = std::move(data_key);
  launch.run_mark = std::move(run_mark);
  return boost::json::serialize(to_json(launch));
}

}  // namespace taas::node
