#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ranks/rank_placement.hpp"
#include "run/coordinator/agents.hpp"

namespace taas::run {

/// Where the ranks of a generation meet.
struct MeetingPoint {
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::vector<std::string> servers;  ///< by rank; empty where no ports are held for them
};

/// The agents that make up the generation at hand, and which of its ranks are theirs. What the Supervisor decides about
/// ranks is sent to them; what they say about ranks of their own is reported to the Supervisor.
class Members {
 public:
  Members(Decisions& decisions, Agents& agents) : decisions_(decisions), agents_(agents) {}

  /// The next generation begins: nobody is a member until its nodes are known.
  void begin(Generation generation);
  /// These agents are its nodes, with these ranks. One that plays several nodes is there as often.
  void seat(const std::vector<AgentId>& agent_of_node, const std::vector<NodeShare>& shares);
  void start();

  [[nodiscard]] Generation generation() const { return generation_; }
  /// Whether this agent is to be believed about this rank.
  [[nodiscard]] bool owns(AgentId agent, Generation of, Rank rank) const;
  [[nodiscard]] bool contains(AgentId agent) const { return members_.contains(agent); }
  [[nodiscard]] NodeIndex first_node_of(AgentId agent) const { return members_.at(agent).shares.front().node; }
  [[nodiscard]] const std::vector<AgentId>& agent_of_node() const { return agent_of_node_; }
  [[nodiscard]] const std::vector<AgentId>& agent_of_rank() const { return agent_of_rank_; }
  /// What to send to start the ranks there, but for what the agent does with their output.
  [[nodiscard]] std::map<AgentId, StartRanks> starts(const MeetingPoint& meeting_point) const;

  // The Supervisor's decisions.
  /// Returns how many agents were told.
  int execute(const SignalRanks& decided);
  void execute(const KillGeneration& decided) { end(decided); }
  void execute(const SweepGeneration& decided) { end(decided); }
  int execute(const RequestStop& decided) { return send(decided); }

  // What agents say of ranks. An agent is believed about its own ranks of the generation at hand only, and the agent of
  // the first node about the store, since the ranks of other nodes use it too.
  void on(AgentId agent, RankSpawned message) { report_rank(agent, message); }
  void on(AgentId agent, RankSpawnFailed message) { report_rank(agent, std::move(message)); }
  void on(AgentId agent, RankExited message) { report_words(agent, std::move(message)); }
  void on(AgentId agent, RankLingers message) { report_words(agent, std::move(message)); }
  void on(AgentId agent, StoreReached message) { report_store(agent, message); }
  void on(AgentId agent, RankJoined message) { report_store(agent, message); }
  void on(AgentId agent, const GenerationGone& message);

  /// Its agent was lost: all of its nodes are reported, before anything is decided about one of them.
  void lose(AgentId agent, const std::string& hostname, const AgentLoss& loss, bool replaceable);
  /// The generation is gone when every agent has said so, or cannot have a living rank any more.
  void check_gone();
  /// Whether something of the generation may live on a node that does not answer, or was lost.
  [[nodiscard]] bool waits_for_silent() const;
  [[nodiscard]] std::optional<Instant> next_check() const { return check_gone_at_; }

 private:
  struct Member {
    std::vector<NodeShare> shares;
    bool gone = false;               ///< nothing of the generation lives there
    std::optional<Instant> gone_at;  ///< the agent was lost: nothing can live there from then on
  };

  int send(const CoordinatorMessage& message);
  void end(const CoordinatorMessage& message);
  [[nodiscard]] Instant plausible(Instant at) const;
  template <class Message>
  void report_rank(AgentId agent, Message message);
  template <class Message>
  void report_words(AgentId agent, Message message);
  template <class Message>
  void report_store(AgentId agent, Message message);

  Decisions& decisions_;
  Agents& agents_;
  Generation generation_{-1};
  Instant started_{};
  std::map<AgentId, Member> members_;
  std::vector<AgentId> agent_of_node_;
  std::vector<AgentId> agent_of_rank_;
  bool gone_wanted_ = false;
  std::optional<Instant> check_gone_at_;
};

}  // namespace taas::run
