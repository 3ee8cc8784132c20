#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "run/coordinator/agents.hpp"

namespace taas::run {

/// Which agents publish what ranks write to the output folder, and what comes of it at the end: the files of rank 0's
/// machine get their names at once, those of other folders when it is known which names are taken. A kernel tells of
/// the writes of its own processes alone, so of the agents that see one folder by one kernel one publishes for these;
/// whether what it saw closed is whole depends on the ranks of all of them, whom it asks.
class OutputRouting {
 public:
  /// `folder`: as in CoordinatorPolicy.
  OutputRouting(std::string folder, Decisions& decisions, Agents& agents)
      : folder_(std::move(folder)), decisions_(decisions), agents_(agents) {}

  /// A generation begins: for each folder and kernel the agent that has published there before, or else the first one.
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
  void on(AgentId agent, const AskWriters& message);
  void on(AgentId agent, const WritersSeen& message);
  /// The agent is gone; `key` is Agents::key_of, asked before.
  void lose(AgentId agent, const std::string& key, const std::string& reason);

 private:
  /// What an agent does with the output of its ranks and of others that see the same folder.
  struct Duty {
    int group = 0;     ///< those that see the same folder
    std::string view;  ///< by this kernel
    NodeIndex node;
    std::string host;
    Generation generation;     ///< in which it was last given this to do
    bool final_names = false;  ///< its files get their names at once
    bool delivers = false;
    std::vector<AgentId> others = {};  ///< that have ranks in this generation, and see the folder as this one does
    bool alone = true;                 ///< nobody has that sees it by another kernel
  };
  /// A question of a publisher that is not answered yet.
  struct Question {
    AgentId asked_by;
    std::uint64_t number = 0;
    std::set<AgentId> unheard;
    bool well = true;
  };

  int group_of(AgentId agent);
  [[nodiscard]] const Duty* find(AgentId agent) const;
  [[nodiscard]] bool has_published(AgentId agent, int group) const;
  void check_settled();

  std::string folder_;
  Decisions& decisions_;
  Agents& agents_;
  std::vector<std::string> folders_;             // the marks of folders that agents see; their places are groups
  std::map<std::string, Duty> duty_of_;          // by the agent's key, so that it may connect again
  std::map<int, WaitingOutput> waiting_;         // by group
  std::map<std::uint64_t, Question> questions_;  // by a number of this one's
  std::uint64_t asked_ = 0;
  std::set<AgentId> unsettled_;  // were asked to settle, and have not answered
  Generation generation_{-1};    // the last one that had ranks
  bool settling_ = false;
  std::string error_;
  int files_ = 0;
};

}  // namespace taas::run
