#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "run/coordinator/coordinator_state.hpp"

namespace taas::run {
namespace {

constexpr const char* kFinalFolder = "output";

/// Where files lie that get their names at the end only.
std::string waiting_folder(int group) { return fmt::format(".delivered/{}", group); }

void append(std::string& text, const std::string& more) {
  if (!more.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", more);
}

}  // namespace

std::string Coordinator::State::key_of(AgentId agent) const {
  const auto& instance = agents.at(agent).hello.instance;
  return instance.empty() ? fmt::format("#{}", agent.value) : instance;
}

/// Agents that see the same folder have the same number. Those without a mark see one of their own.
int Coordinator::State::group_of(AgentId agent) {
  if (policy.folder.empty()) return 0;
  const auto& folder = agents.at(agent).folder;
  auto known = std::find(folders.begin(), folders.end(), folder);
  if (known == folders.end() || folder.empty()) known = folders.insert(folders.end(), folder);
  return static_cast<int>(known - folders.begin());
}

/// The first node of each group publishes for all of it. The files of rank 0's machine get their names at once; those
/// of other folders at the end, when it is known which names are taken.
void Coordinator::State::assign_output() {
  std::set<AgentId> seen;
  std::set<int> served;
  const int first_group = group_of(agent_of_node.front());
  output_generation = generation;
  for (std::size_t node = 0; node < agent_of_node.size(); ++node) {
    AgentId agent = agent_of_node[node];
    if (!seen.insert(agent).second) continue;
    int group = node == 0 ? first_group : group_of(agent);
    if (!served.insert(group).second) continue;
    std::erase_if(output_of, [&](const auto& entry) { return entry.second.group == group; });
    const auto& known = agents.at(agent);
    bool delivers = known.folder != policy.folder && !policy.folder.empty();
    Output duty{group,   NodeIndex{static_cast<int>(node)}, known.hello.hostname, generation, group == first_group,
                delivers};
    output_of[key_of(agent)] = duty;
    if (!duty.final_names) waiting_output[group] = {waiting_folder(group), duty.node, duty.host};
    receive_from(agent);
  }
}

/// Of an agent that connects again too: what it has not delivered yet comes over its new link.
void Coordinator::State::receive_from(AgentId agent) {
  auto found = output_of.find(key_of(agent));
  if (found == output_of.end() || !found->second.delivers) return;
  const auto& duty = found->second;
  emit(ReceiveFiles{agent, duty.host, duty.final_names ? kFinalFolder : waiting_folder(duty.group)});
}

OutputDuty Coordinator::State::duty_of(AgentId agent) const {
  auto found = output_of.find(key_of(agent));
  if (found == output_of.end()) return {};
  const auto& duty = found->second;
  bool elsewhere = duty.delivers || duty.final_names;
  return {true, elsewhere ? kFinalFolder : waiting_folder(duty.group), duty.delivers};
}

/// All that have something of the run's to put on disk, whether ranks are there now or not.
void Coordinator::State::carry_out(const SettleOutput& decided) {
  emit(Action(decided));
  settling = true;
  std::set<std::string> here;
  for (const auto& [agent, known] : agents) {
    if (!output_of.contains(key_of(agent))) continue;
    here.insert(key_of(agent));
    unsettled.insert(agent);
    emit(Tell{agent, Settle{decided.publish}});
  }
  for (const auto& [key, duty] : output_of) {
    if (!here.contains(key) && duty.generation == output_generation) append(settle_error, output_lost_with(duty, ""));
  }
  check_settled();
}

std::string Coordinator::State::output_lost_with(const Output& duty, const std::string& reason) const {
  auto who = duty.host.empty() ? "a node" : duty.host;
  auto what = duty.node.value == 0 ? "what rank 0 wrote" : "what its ranks wrote";
  return fmt::format("{} was lost before {} was on disk{}{}", who, what, reason.empty() ? "" : ": ", reason);
}

void Coordinator::State::carry_out(const ReportFailure& decided) {
  emit(Action(decided));
  if (!decided.restarting) return;
  for (const auto& [agent, known] : agents) {
    if (output_of.contains(key_of(agent))) emit(Tell{agent, Abandon{}});
  }
}

void Coordinator::State::hear(AgentId agent, const OutputSettled& message) {
  if (unsettled.erase(agent) == 0) return;
  const auto& duty = output_of.at(key_of(agent));
  bool named = !policy.folder.empty() && !message.error.empty();
  append(settle_error, named ? fmt::format("{}: {}", agents.at(agent).hello.hostname, message.error) : message.error);
  if (duty.final_names) settled_files += message.files;
  check_settled();
}

void Coordinator::State::lose_output(AgentId agent, const std::string& key, const std::string& reason) {
  if (unsettled.erase(agent) == 0) return;
  append(settle_error, output_lost_with(output_of.at(key), reason));
  check_settled();
}

/// Once nobody writes to them any more, files of other folders are given their names.
void Coordinator::State::check_settled() {
  if (!unsettled.empty() || finished) return;
  if (waiting_output.empty()) return supervise(OutputSettled{settle_error, now, settled_files});
  std::vector<WaitingOutput> waiting;
  for (auto& [group, output] : waiting_output) waiting.push_back(std::move(output));
  waiting_output.clear();
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  emit(PlaceOutput{std::move(waiting)});
}

void Coordinator::State::on(const OutputPlaced& event) {
  append(settle_error, event.error);
  if (settling) supervise(OutputSettled{settle_error, now, settled_files + event.files});
}

}  // namespace taas::run
