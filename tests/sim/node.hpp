#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agenda.hpp"
#include "pipe.hpp"
#include "run/agent/agent.hpp"
#include "run/random.hpp"

namespace taas::sim {

using run::Random;

/// One training process.
struct SimulatedRank {
  Generation generation;
  Rank rank;
  bool alive = true;
  bool ending = false;  ///< has raised or lost a peer, and cleans up
  run::Evidence told = {};
};

/// What a node asks of the world around it.
class NodeWorld {
 public:
  virtual ~NodeWorld() = default;
  virtual void connect(int node) = 0;
  virtual void send(int node, const run::AgentMessage& message) = 0;
  virtual void ask(int node, const run::Heartbeat& heartbeat) = 0;
  virtual void left(int node, const run::Leave& leave) = 0;
  virtual void spawned(int node, SimulatedRank& rank, const run::StartRanks& start) = 0;
  virtual void died(int node, const SimulatedRank& rank, run::ExitStatus status) = 0;
  virtual void require(bool holds, const std::string& what) = 0;
};

/// A simulated machine: its agent process, its ranks, its clock. It can be frozen and thawed, its agent killed, its
/// power cut.
class Node {
 public:
  Node(Agenda& agenda, Random& random, NodeWorld& world, int number, run::AgentPolicy policy, run::Hello hello);

  void start_agent();
  void kill_agent();  ///< kill -9: the keeper kills the ranks, the kernel closes the link
  void cut_power();   ///< nothing is left, and nobody is told
  void restore_power() { powered_ = true; }
  void freeze();
  void thaw();
  /// The agent's process alone, while ranks live on.
  void stop_agent() { agent_stopped_ = true; }
  void continue_agent();
  [[nodiscard]] bool agent_stopped() const { return agent_stopped_; }
  void kill_rank(std::size_t index);
  /// A rank ends by itself, after `cleanup` when it raises.
  void end_rank(SimulatedRank& rank, run::ExitStatus status);
  void begin_to_end(SimulatedRank& rank, run::Evidence words, Duration cleanup);

  /// To the agent process that runs now.
  void tell(run::AgentEvent event);
  /// On this machine: later when it is frozen, never when its power is cut.
  void here(std::function<void()> what);
  void later(Duration delay, std::function<void()> what);
  /// By the agent's process: later when that is stopped, never when it has ended meanwhile.
  void by_agent(std::function<void()> what);

  /// Something happened on this node: for the agent that runs now, if it still does then.
  void say(Duration delay, run::AgentMessage message);

  [[nodiscard]] bool agent_runs() const { return agent_ != nullptr; }
  [[nodiscard]] bool powered() const { return powered_; }
  [[nodiscard]] bool frozen() const { return frozen_; }
  /// Its ranks cannot run, or have only just been able to again.
  [[nodiscard]] bool excused() const;
  [[nodiscard]] Instant clock() const;
  [[nodiscard]] const std::vector<std::unique_ptr<SimulatedRank>>& ranks() const { return ranks_; }
  [[nodiscard]] int living() const;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int incarnation() const { return incarnation_; }
  [[nodiscard]] const run::Hello& hello() const { return hello_; }

  Path up;
  Path down;
  std::string folder;  ///< that ranks write to: those with the same text see the same one
  std::string view;    ///< by which kernel it sees that
  Duration disk{};     ///< what its disk may take for one thing
  bool refuses = false;
  bool calm = false;  ///< ranks heed signals

 private:
  void carry_out(const run::AgentAction& action);
  void act(const run::Send& action) { world_.send(number_, action.message); }
  void act(const run::Perform& action);
  void act(const run::Connect&) { world_.connect(number_); }
  void act(const run::Ask& action) { world_.ask(number_, action.heartbeat); }
  void act(const run::Leave& action);
  void act(const run::SetDeadline& action);
  void act(const run::ClearDeadline&) { ++deadline_; }
  void act(const run::Notify&) {}
  void act(const run::TellHere&) {}

  template <class Order>
  void perform(const Order&) {}
  void perform(const run::Welcome&);
  void perform(const run::ProbeAddresses& order);
  void perform(const run::StartRanks& order);
  void perform(const run::SignalRanks& order);
  void perform(const run::KillGeneration&) { sweep(9); }
  void perform(const run::SweepGeneration& order) { sweep(order.signal); }
  void perform(const run::Settle&);
  void perform(const run::DataWorkers& list);

  void start(const run::StartRanks& order);
  void sweep(int signal);
  void deliver(SimulatedRank& rank, int signal);
  void check_gone();
  void kill_all(Duration within);

  Agenda& agenda_;
  Random& random_;
  NodeWorld& world_;
  int number_;
  run::AgentPolicy policy_;
  run::Hello hello_;
  Duration clock_ahead_;
  int drift_millionths_;
  std::unique_ptr<run::Agent> agent_;
  int incarnation_ = 0;
  std::uint64_t deadline_ = 0;
  int probe_ = 0;
  bool powered_ = true;
  bool frozen_ = false;
  bool agent_stopped_ = false;
  std::vector<std::function<void()>> agent_backlog_;  // meanwhile
  Instant frozen_at_{};
  Instant thawed_at_{};
  std::vector<std::function<void()>> backlog_;  // while frozen
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;
  Generation generation_{-1};
  bool gone_wanted_ = false;
  int starting_ = 0;  // counts up, so that a start that is not wanted any more is known
};

}  // namespace taas::sim
