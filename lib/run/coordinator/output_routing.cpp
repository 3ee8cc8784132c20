#include "run/coordinator/output_routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace taas::run {
namespace {

constexpr const char* kFinalFolder = "output";

/// Where files lie that get their names at the end only.
std::string waiting_folder(int group) { return fmt::format(".delivered/{}", group); }

void append(std::string& text, const std::string& more) {
  if (!more.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", more);
}

/// What is told of output that was lost with its machine.
std::string describe_loss(const std::string& host, NodeIndex node, const std::string& reason) {
  auto who = host.empty() ? fmt::format("node {}", node.value) : fmt::format("node {} ({})", node.value, host);
  auto what = node.value == 0 ? "what rank 0 wrote" : "what its ranks wrote";
  return fmt::format("{} was lost before {} was on disk{}{}", who, what, reason.empty() ? "" : ": ", reason);
}

}  // namespace

/// Agents that see the same folder have the same number. Those without a mark see one of their own.
int OutputRouting::group_of(AgentId agent) {
  if (folder_.empty()) return 0;
  const auto& folder = agents_.at(agent).folder;
  auto known = std::find(folders_.begin(), folders_.end(), folder);
  if (known == folders_.end() || folder.empty()) known = folders_.insert(folders_.end(), folder);
  return static_cast<int>(known - folders_.begin());
}

const OutputRouting::Duty* OutputRouting::find(AgentId agent) const {
  auto found = duty_of_.find(agents_.key_of(agent));
  return found == duty_of_.end() ? nullptr : &found->second;
}

bool OutputRouting::has_published(AgentId agent, int group) const {
  const auto* duty = find(agent);
  return duty != nullptr && duty->group == group && duty->view == agents_.at(agent).view;
}

void OutputRouting::assign(const std::vector<AgentId>& agent_of_node, Generation generation) {
  const int first_group = group_of(agent_of_node.front());
  generation_ = generation;
  questions_.clear();
  std::vector<AgentId> all;
  std::map<AgentId, NodeIndex> first_node;
  for (std::size_t node = 0; node < agent_of_node.size(); ++node) {
    const AgentId agent = agent_of_node[node];
    if (!first_node.try_emplace(agent, NodeIndex{static_cast<int>(node)}).second) continue;
    all.push_back(agent);
  }
  std::map<std::pair<int, std::string>, std::vector<AgentId>> seen_by;  // by group and view
  for (const AgentId agent : all) {
    const int group = agent == all.front() ? first_group : group_of(agent);
    seen_by[{group, agents_.at(agent).view}].push_back(agent);
  }
  std::map<std::pair<int, std::string>, AgentId> publishers;
  std::map<int, std::size_t> agents_of_group;
  for (const auto& [place, seers] : seen_by) {
    const auto has = std::find_if(seers.begin(), seers.end(),
                                  [&, group = place.first](AgentId agent) { return has_published(agent, group); });
    publishers.emplace(place, has == seers.end() ? seers.front() : *has);
    agents_of_group[place.first] += seers.size();
  }
  std::erase_if(duty_of_, [&](const auto& entry) {
    return publishers.contains({entry.second.group, entry.second.view});
  });
  std::map<int, WaitingOutput> waiting;  // by group, of its first node
  for (const auto& [place, agent] : publishers) {
    const auto& [group, view] = place;
    const auto& seers = seen_by.at(place);
    const auto& known = agents_.at(agent);
    const bool delivers = known.folder != folder_ && !folder_.empty();
    Duty duty{group, view, first_node.at(agent), known.hello.hostname, generation, group == first_group, delivers};
    std::remove_copy(seers.begin(), seers.end(), std::back_inserter(duty.others), agent);
    duty.alone = agents_of_group[group] == seers.size();
    if (!duty.final_names) {
      auto [first, is_new] = waiting.try_emplace(group, WaitingOutput{waiting_folder(group), duty.node, duty.host});
      if (!is_new && duty.node < first->second.node) first->second = {waiting_folder(group), duty.node, duty.host};
    }
    duty_of_[agents_.key_of(agent)] = std::move(duty);
    receive_from(agent);
  }
  for (auto& [group, output] : waiting) waiting_.insert_or_assign(group, std::move(output));
}

void OutputRouting::receive_from(AgentId agent) {
  const auto* duty = find(agent);
  if (duty == nullptr || !duty->delivers) return;
  decisions_.emit(ReceiveFiles{agent, duty->host, duty->final_names ? kFinalFolder : waiting_folder(duty->group)});
}

OutputDuty OutputRouting::duty_of(AgentId agent) const {
  const auto* duty = find(agent);
  if (duty == nullptr) return {};
  bool elsewhere = duty->delivers || duty->final_names;
  return {true, elsewhere ? kFinalFolder : waiting_folder(duty->group), duty->delivers, !duty->others.empty(),
          duty->alone};
}

void OutputRouting::abandon() {
  for (const auto& [agent, known] : agents_.all()) {
    if (find(agent) != nullptr) agents_.send(agent, Abandon{});
  }
}

void OutputRouting::settle(bool publish) {
  settling_ = true;
  std::set<std::string> here;
  for (const auto& [agent, known] : agents_.all()) {
    if (find(agent) == nullptr) continue;
    here.insert(agents_.key_of(agent));
    unsettled_.insert(agent);
    agents_.send(agent, Settle{publish});
  }
  for (const auto& [key, duty] : duty_of_) {
    bool lost = !here.contains(key) && duty.generation == generation_;
    if (lost) append(error_, describe_loss(duty.host, duty.node, ""));
  }
  check_settled();
}

void OutputRouting::on(AgentId agent, const OutputSettled& message) {
  if (unsettled_.erase(agent) == 0) return;
  bool named = !folder_.empty() && !message.error.empty();
  append(error_, named ? fmt::format("{}: {}", agents_.at(agent).hello.hostname, message.error) : message.error);
  if (duty_of_.at(agents_.key_of(agent)).final_names) files_ += message.files;
  check_settled();
}

void OutputRouting::on(AgentId agent, const AskWriters& message) {
  const auto* duty = find(agent);
  if (duty == nullptr || message.generation != generation_) return;
  const Question question{agent, message.number, {duty->others.begin(), duty->others.end()}};
  if (question.unheard.empty()) return agents_.send(agent, WritersAnswer{message.number, true});
  const auto number = ++asked_;
  questions_.emplace(number, question);
  for (const AgentId other : question.unheard) agents_.send(other, LookAtWriters{generation_, number});
}

void OutputRouting::on(AgentId agent, const WritersSeen& message) {
  auto found = questions_.find(message.number);
  if (found == questions_.end() || found->second.unheard.erase(agent) == 0) return;
  auto& question = found->second;
  question.well = question.well && message.well;
  if (!question.unheard.empty()) return;
  agents_.send(question.asked_by, WritersAnswer{question.number, question.well});
  questions_.erase(found);
}

void OutputRouting::lose(AgentId agent, const std::string& key, const std::string& reason) {
  if (unsettled_.erase(agent) == 0) return;
  const auto& duty = duty_of_.at(key);
  append(error_, describe_loss(duty.host, duty.node, reason));
  check_settled();
}

/// Once nobody writes to them any more, files of other folders are given their names.
void OutputRouting::check_settled() {
  if (!unsettled_.empty() || decisions_.finished()) return;
  if (waiting_.empty()) return decisions_.report(OutputSettled{error_, decisions_.now(), files_});
  std::vector<WaitingOutput> waiting;
  for (auto& [group, output] : waiting_) waiting.push_back(std::move(output));
  waiting_.clear();
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  decisions_.emit(PlaceOutput{std::move(waiting)});
}

void OutputRouting::on(const OutputPlaced& event) {
  append(error_, event.error);
  if (settling_) decisions_.report(OutputSettled{error_, decisions_.now(), files_ + event.files});
}

}  // namespace taas::run
