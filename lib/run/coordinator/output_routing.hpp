#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "run/coordinator/agents.hpp"

namespace taas::run {

/// Which agent publishes what ranks write to the output folder, for itself and for others that see the same folder, and
/// what comes of it at the end: the files of rank 0's machine get their names at once, those of other folders when it
/// is known which names are taken.
class OutputRouting {
 public:
  /// `folder`: as in CoordinatorPolicy.
  OutputRouting(std::string folder, Decisions& decisions, Agents& agents)
      : folder_(std::move(folder)), decisions_(decisions), agents_(agents) {}

  /// A generation begins: the first node of each folder publishes for all of it.
  void assign(const std::vector<AgentId>& agent_of_node, Generation generation);
  /// Of an agent that connects again too: what it has not delivered yet comes over its new link.
  void receive_from(AgentId agent);
  [[nodiscard]] OutputDuty duty_of(AgentId agent) const;
  /// The generation failed, and another one begins.
  void abandon();

  /// The run goes to its end: all that have something of it to put on disk, whether ranks are there now or not.
  void settle(bool publish);
  [[nodiscard]] bool settling() const { return settling_; }
  void on(AgentId agent, const OutputSettled& message);
  void on(const OutputPlaced& event);
  /// The agent is gone; `key` is Agents::key_of, asked before.
  void lose(AgentId agent, const std::string& key, const std::string& reason);

 private:
  /// What an agent does with the output of its ranks and of others that see the same folder.
  struct Duty {
    int group = 0;  ///< those that see the same folder
    NodeIndex node;
    std::string host;
    Generation generation;     ///< in which it was last given this to do
    bool final_names = false;  ///< its files get their names at once
    bool delivers = false;
  };

  int group_of(AgentId agent);
  [[nodiscard]] const Duty* find(AgentId agent) const;
  void check_settled();

  std::string folder_;
  Decisions& decisions_;
  Agents& agents_;
  std::vector<std::string> folders_;      // the marks of folders that agents see; their places are groups
  std::map<std::string, Duty> duty_of_;   // by the agent's key, so that it may connect again
  std::map<int, WaitingOutput> waiting_;  // by group
  std::set<AgentId> unsettled_;           // were asked to settle, and have not answered
  Generation generation_{-1};             // the last one that had ranks
  bool settling_ = false;
  std::string error_;
  int files_ = 0;
};

}  // namespace taas::run
