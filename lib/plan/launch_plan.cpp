#include "plan/launch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/rendezvous.hpp"
#include "plan/sizes.hpp"
#include "plan/streams.hpp"

namespace taas::plan {
namespace {

constexpr const char* kNoRunId = "none";  // torchrun's default of --rdzv-id

void add_nodes(LaunchPlan& plan, const std::vector<int>& ranks_on_node, const Machine& machine) {
  int next_rank = 0;
  for (int local_world_size : ranks_on_node) {
    NodeIndex index{static_cast<int>(plan.nodes.size())};
    plan.nodes.push_back({index, machine.hostname, ranks_on_node.size() > 1, Rank{next_rank}, local_world_size});
    for (int local_rank = 0; local_rank < local_world_size; ++local_rank) {
      plan.ranks.push_back({Rank{next_rank++}, local_rank, index});
    }
  }
}

void add_notices(LaunchPlan& plan) {
  const auto& ignored = plan.options.without_effect;
  if (!ignored.empty()) plan.notices.push_back(fmt::format("without effect here: {}", fmt::join(ignored, ", ")));
}

}  // namespace

Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id) {
  auto sizes = decide_sizes(options.size, machine);
  if (!sizes) return sizes.error();
  auto rendezvous = decide_rendezvous(options.rendezvous, static_cast<int>(sizes->ranks_on_node.size()));
  if (!rendezvous) return rendezvous.error();

  LaunchPlan plan;
  plan.options = options;
  plan.options.rendezvous = std::move(*rendezvous);
  plan.run_id = plan.options.rendezvous.run_id.value_or(kNoRunId);
  if (plan.run_id == kNoRunId || plan.run_id.empty()) plan.run_id = std::move(run_id);
  plan.device = sizes->device;
  plan.notices = std::move(sizes->notices);
  add_nodes(plan, sizes->ranks_on_node, machine);
  add_notices(plan);
  auto outputs = decide_streams(options.output, plan.ranks);
  if (!outputs) return outputs.error();
  plan.outputs = std::move(*outputs);
  plan.omp_threads = std::max(1, machine.cores / plan.world_size());  // simulated nodes share this machine's cores
  return plan;
}

}  // namespace taas::plan
