#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node.hpp"
#include "run/coordinator/coordinator.hpp"
#include "settings.hpp"

namespace taas::sim {

/// How a simulated run went.
struct Outcome {
  std::vector<std::string> violations;  ///< invariants that did not hold
  run::Verdict verdict;
  bool finished = false;
  int generations = 0;
  int nodes_lost = 0;
  Duration node_timeout{};
  Duration length{};
  std::vector<std::uint64_t> messages;  ///< by node, both ways, without heartbeats and their echoes
};

/// A coordinator, nodes with agents and ranks, and a network between them, in virtual time: carries out what they
/// decide, lets things go wrong, and checks at every step that what was decided is sound.
class Cluster : public NodeWorld {
 public:
  Cluster(std::uint64_t seed, Settings settings);
  /// Called with a line for everything that happens and is decided.
  std::function<void(const std::string&)> on_line;
  /// The last rank of the first node fails in the first generation, when all have joined.
  void fail_once() { fails_once_ = true; }
  Outcome run();

  // What nodes ask for.
  void connect(int node) override;
  void send(int node, const run::AgentMessage& message) override;
  void ask(int node, const run::Heartbeat& heartbeat) override;
  void left(int node, const run::Leave& leave) override;
  void spawned(int node, SimulatedRank& rank, const run::StartRanks& start) override;
  void died(int node, const SimulatedRank& rank, run::ExitStatus status) override;
  void require(bool holds, const std::string& what) override;

 private:
  struct Connection {
    int node;
    std::shared_ptr<Pipe> up;
    std::shared_ptr<Pipe> down;
    bool agent_open = true;
    bool coordinator_open = true;
    bool aside = false;  ///< of an agent that asks because its link is silent
  };

  // The coordinator's side.
  void feed(const run::CoordinatorEvent& event);
  void handle(const run::CoordinatorEvent& event);
  void carry_out(const run::CoordinatorAction& action);
  void act(const run::Happened& action);
  void act(const run::Action& action);
  void act(const run::Tell& action);
  void act(const run::Drop& action);
  void act(const run::StartAgent& action);
  void act(const run::ReceiveFiles& action) { receiving_.insert(action.agent); }
  void act(const run::PlaceOutput& action);
  void act(const run::ReleaseNodes&) {}
  void act(const run::AwaitAnswers& action);
  void act(const run::Parted&);
  void obey(const run::SetDeadline& action);
  void obey(const run::ClearDeadline&) { ++deadline_; }
  void obey(const run::ReportFailure& action);
  void obey(const run::Finish& action);
  template <class Decided>
  void obey(const Decided&) {}
  void receive(run::AgentId id, const run::AgentMessage& message);

  // The network (network.cpp).
  run::AgentId open(int node);
  void try_to_ask(int node, int incarnation, const run::Heartbeat& heartbeat);
  void close_by_agent(run::AgentId id, const std::string& reason);
  void close_by_coordinator(run::AgentId id);
  void lose_agent_end(run::AgentId id);
  void end_for_agent(run::AgentId id, const char* reason);
  void lose_coordinator_end(run::AgentId id);
  void heal(int node, Duration longest_pause);
  run::AgentMessage in_a_frame(const run::AgentMessage& message);
  [[nodiscard]] run::AgentId connection_of(int node) const;

  // What goes wrong (faults.cpp).
  void set_the_scene();
  void draw_node_fault();
  void stall();
  [[nodiscard]] bool may_stand_still() const;
  void stand_still(Duration length);
  void suspend_everything();
  void go_on();
  void disturb_the_end();
  void inject(int node, int kind);
  void stop_agent(int node);
  void live(int node, SimulatedRank& rank);
  void lose_peers(const SimulatedRank& gone);
  void blame(int node) {
    blamed_nodes_.insert(node);
    missing_allowed_ = missing_allowed_ || matters(node);
  }
  void break_rank(Rank rank) { broken_ranks_.emplace(rank, agenda_.now()); }

  // What must hold (invariants.cpp).
  void check_spawn(int node, const SimulatedRank& rank, const run::StartRanks& start);
  void check_start(const std::vector<run::CoordinatorAction>& decided);
  void check_failure(const run::Verdict& verdict);
  void check_first(Rank culprit, const std::string& summary);
  void check_end();
  void check_exit_codes();

  /// The folder that a machine sees; the same text, the same folder.
  [[nodiscard]] const std::string& folder_of(run::AgentId agent) { return node(connections_.at(agent).node).folder; }
  [[nodiscard]] const std::string& view_of(run::AgentId agent) { return node(connections_.at(agent).node).view; }
  void check_duties(const std::vector<const run::Tell*>& starts);
  void check_output_at_the_end();

  void check_workers(const run::DataWorkers& list);
  void check_workers_at_the_end();

  [[nodiscard]] bool is_data(int number) const { return number >= settings_.nodes; }
  /// Without this machine there may be too few.
  [[nodiscard]] bool matters(int number) const { return !is_data(number) || !settings_.policy.loader.empty(); }
  [[nodiscard]] Node& node(int number) { return *nodes_.at(static_cast<std::size_t>(number)); }
  void say(const std::string& line);

  Agenda agenda_;
  Random random_;
  Settings settings_;
  run::Coordinator coordinator_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<run::AgentId, Connection> connections_;
  int last_connection_ = -1;
  std::set<run::AgentId> known_;        // connections over which an agent has said who it is
  std::map<int, run::AgentId> latest_;  // connection of each node
  std::uint64_t deadline_ = 0;
  Instant stalled_until_{};
  std::vector<run::CoordinatorEvent> backlog_;  // while the coordinator's loop stands still
  bool fails_once_ = false;

  Generation generation_{-1};
  Instant started_{};                 // the generation
  std::map<Generation, int> living_;  // how many ranks
  std::set<Rank> spawned_;            // of the generation
  std::vector<int> seat_;             // by node index: which machine
  std::map<Rank, Instant>
      broken_ranks_;             // of the generation: those that failed by themselves or were killed, when first
  bool broken_ = false;          // a rank of the generation died otherwise than well
  std::set<int> blamed_nodes_;   // something has happened to them or to their network
  std::set<int> losable_nodes_;  // ... that may cost them
  std::set<int> asking_;         // nodes that are trying to reach the coordinator beside their link
  Instant agents_stopped_until_{};
  std::map<int, Instant> quiet_until_;  // by node: no other fault of its network until then
  std::set<int> stop_requests_;         // agents that were told to write a checkpoint with a signal
  bool stopped_ = false;
  bool missing_allowed_ = false;
  run::DataWorkers workers_;          // as agents were told last
  std::set<run::AgentId> receiving_;  // agents that may send files
  std::set<std::string> settled_;     // folders of which all that ranks wrote is where it belongs
  bool placed_ = false;               // files were given their names
  bool parted_ = false;               // the coordinator's process has ended
  std::set<int> told_at_the_end_;     // machines that nothing had happened to when the verdict was told to them
  std::map<int, int> left_with_;      // machine and exit code of its agent
  Outcome outcome_;
};

}  // namespace taas::sim
