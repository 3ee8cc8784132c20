#include <ATen/ATen.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "taas/process_group.hpp"
#include "training/group/group_setup.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

void check_members(const ProcessGroup& parent, const std::vector<int>& ranks) {
  if (ranks.empty()) throw InvalidArgument("new_group: a group needs a rank at least");
  for (int rank : ranks) check_rank(parent, "new_group", "rank", rank);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (std::find(ranks.begin() + static_cast<std::ptrdiff_t>(i) + 1, ranks.end(), ranks[i]) != ranks.end()) {
      throw InvalidArgument("new_group: rank " + std::to_string(ranks[i]) + " is named twice");
    }
  }
}

/// As in Python: a rank that ended right away would close connections that others are still making.
void meet(const ProcessGroup& group) {
  auto nothing = at::zeros({1});
  all_reduce(group, nothing);
}

/// `ranks` are of the parent, and `rank` is this one's place among them.
std::shared_ptr<ProcessGroupState> member_state(const ProcessGroupState& parent, const std::vector<int>& ranks,
                                                std::size_t rank, const std::string& name,
                                                const GroupOptions& options) {
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = parent.environment;
  state->environment.rank = static_cast<int>(rank);
  state->environment.world_size = static_cast<int>(ranks.size());
  state->device = parent.device;
  state->name = name;
  state->timeout = options.timeout.value_or(parent.timeout);
  state->check_collectives = parent.check_collectives;
  state->watch = parent.watch;
  state->ranks.clear();
  for (int member : ranks) state->ranks.push_back(parent.ranks[static_cast<std::size_t>(member)]);
  if (ranks.size() == 1) return state;
  state->backend = parent.backend;
  state->store = c10::make_intrusive<c10d::PrefixStore>(name, parent.store);
  set_up(*state);
  meet(ProcessGroup(state));
  return state;
}

}  // namespace

std::optional<ProcessGroup> new_group(const ProcessGroup& parent, const std::vector<int>& ranks,
                                      const GroupOptions& options) {
  check_members(parent, ranks);
  const auto& state = parent.state();
  // split() makes several at once, of different ranks.
  const auto name = state.name + "/" + std::to_string(state.groups_made++) + " of " + std::to_string(ranks.front());
  const auto member = std::find(ranks.begin(), ranks.end(), parent.rank());
  if (member == ranks.end()) return std::nullopt;
  return ProcessGroup(member_state(state, ranks, static_cast<std::size_t>(member - ranks.begin()), name, options));
}

std::optional<ProcessGroup> split(const ProcessGroup& parent, std::optional<int> color, int key,
                                  const GroupOptions& options) {
  const auto mine = at::tensor({color.has_value() ? 1 : 0, color.value_or(0), key}, at::kInt);
  auto all = at::empty({parent.world_size(), 3}, at::kInt);
  all_gather(parent, all, mine);
  std::vector<std::pair<int, int>> members;  // key and rank
  for (int rank = 0; rank < parent.world_size(); ++rank) {
    const auto* row = all.const_data_ptr<int>() + 3 * rank;
    if (row[0] == 1 && row[1] == color) members.emplace_back(row[2], rank);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [ignored, rank] : members) ranks.push_back(rank);
  if (color) return new_group(parent, ranks, options);
  ++parent.state().groups_made;
  return std::nullopt;
}

}  // namespace taas
