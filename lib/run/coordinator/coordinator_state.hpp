#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/coordinator/coordinator.hpp"
#include "run/coordinator/membership.hpp"
#include "run/coordinator/reachability.hpp"

namespace taas::run {

constexpr int kUsageError = 2;  ///< the exit code

/// The Coordinator's inside. coordinator.cpp joins the Supervisor to the rest; agents that come, speak and go are in
/// coordinator_agents.cpp, CPU machines in coordinator_data.cpp, the way to a new generation is in
/// coordinator_gather.cpp, what the Supervisor decides about ranks becomes messages in coordinator_ranks.cpp, and what
/// ranks write to the output folder comes together in coordinator_output.cpp.
struct Coordinator::State {
  struct Agent {
    Hello hello;
    std::uint16_t store_port = 0;
    std::vector<std::uint16_t> rank_ports;
    Instant heard{};
    std::string folder = {};
  };
  /// An agent's part of the generation at hand.
  struct Member {
    std::vector<NodeShare> shares;
    bool gone = false;               ///< nothing of the generation lives there
    std::optional<Instant> gone_at;  ///< the agent was lost: nothing can live there from then on
  };

  /// What an agent does with the output of its ranks and of others that see the same folder.
  struct Output {
    int group = 0;  ///< those that see the same folder
    NodeIndex node;
    std::string host;
    Generation generation;     ///< in which it was last given this to do
    bool final_names = false;  ///< its files get their names at once
    bool delivers = false;
  };

  explicit State(CoordinatorPolicy given);

  // Events: one overload each.
  void on(const Event& event);
  void on(const AgentArrived& event);
  void on(const AgentSaid& event);
  void on(const AgentLeft& event);
  void on(const HostFailed& event);
  void on(const OutputPlaced& event);
  void on(const CoordinatorStalled& event);
  void on_deadline();

  // What an agent may say: one overload each.
  template <class Message>
  void hear(AgentId /*agent*/, const Message& /*message*/) {}
  void hear(AgentId agent, const Heartbeat& message);
  void hear(AgentId agent, const Ready& message);
  void hear(AgentId agent, const Refused& message);
  void hear(AgentId agent, const AddressesReached& message);
  void hear(AgentId agent, const Signalled& message);
  void hear(AgentId agent, const RankSpawned& message) { pass_on(agent, message); }
  void hear(AgentId agent, const RankSpawnFailed& message) { pass_on(agent, message); }
  void hear(AgentId agent, const StoreReached& message);
  void hear(AgentId agent, const RankJoined& message);
  void hear(AgentId agent, const RankExited& message) { pass_on(agent, message); }
  void hear(AgentId agent, const GenerationGone& message);
  void hear(AgentId agent, const OutputSettled& message);
  void hear(AgentId agent, const DataPrepared& message);
  void hear(AgentId agent, const LoaderPrepared& message);
  void hear(AgentId agent, const LoaderFailed& message);

  // The Supervisor's decisions: one overload each.
  template <class Decided>
  void carry_out(const Decided& decided) {
    emit(Action(decided));
  }
  void carry_out(const SetDeadline& decided) { supervisor_deadline = decided.at; }
  void carry_out(const ClearDeadline&) { supervisor_deadline.reset(); }
  void carry_out(const GatherNodes& decided);
  void carry_out(const StartGeneration& decided);
  void carry_out(const SignalRanks& decided);
  void carry_out(const KillGeneration& decided);
  void carry_out(const SweepGeneration& decided);
  void carry_out(const RequestStop& decided);
  void carry_out(const SettleOutput& decided);
  void carry_out(const ReportFailure& decided);
  void carry_out(const Finish& decided);

  /// Tells the Supervisor and carries out what it decides; what comes up meanwhile waits its turn.
  void supervise(Event event);
  void supervise_pending();
  void emit(CoordinatorAction action) { actions.push_back(std::move(action)); }
  void notify(std::string text) { emit(Action(Notify{std::move(text)})); }
  void tell(AgentId agent, const CoordinatorMessage& message);
  void tell_members(const CoordinatorMessage& message);
  void announce_deadline();

  // Agents.
  [[nodiscard]] std::optional<AgentId> connection_of(const std::string& instance) const;
  [[nodiscard]] std::string unwanted(const Hello& hello) const;
  [[nodiscard]] bool came_back_twice(const Hello& hello) const;
  void dismiss(AgentId agent, const std::string& reason, int exit_code);
  void turn_away(AgentId agent, std::string why);
  void lose(AgentId agent, std::string reason, Instant last_sign_of_life, Instant gone_at);
  void report_loss(const Hello& hello, const std::vector<NodeShare>& shares, const std::string& reason,
                   Instant last_sign_of_life);
  [[nodiscard]] bool may_leave(AgentId agent, int signal) const;
  void let_go(AgentId agent, int signal);
  void part_with_leaving();
  void lose_the_silent();
  void start_lost_hosts();

  // CPU machines.
  void welcome_data(AgentId agent, const Hello& hello);
  void data_ready(AgentId agent, const Ready& message);
  void data_refused(AgentId agent, const std::string& why);
  void data_lost(AgentId agent, const Hello& hello, const std::string& reason);
  void data_changed();
  [[nodiscard]] bool data_list_is_open() const;
  [[nodiscard]] bool loader_is_prepared();
  void fail_preparation(std::string why);

  // The next generation.
  void try_gather();
  void gathered(const Chosen& chosen);
  [[nodiscard]] int ranks_of(AgentId agent, std::size_t node) const;
  [[nodiscard]] bool find_address(const std::vector<AgentId>& agents);
  void tell_unreachable(const std::vector<AgentId>& agents);
  [[nodiscard]] std::vector<std::string> servers_of_ranks() const;
  [[nodiscard]] StartRanks start_of(AgentId agent, const Member& member) const;

  // The generation at hand.
  template <class Message>
  void pass_on(AgentId agent, Message message);
  [[nodiscard]] bool owns(AgentId agent, Generation of, Rank rank) const;
  [[nodiscard]] Instant plausible(Instant at) const;
  void check_gone();
  [[nodiscard]] std::optional<AgentId> first_agent() const;

  // Output.
  [[nodiscard]] std::string key_of(AgentId agent) const;
  int group_of(AgentId agent);
  void assign_output();
  void receive_from(AgentId agent);
  [[nodiscard]] OutputDuty duty_of(AgentId agent) const;
  [[nodiscard]] std::string output_lost_with(const Output& duty, const std::string& reason) const;
  void lose_output(AgentId agent, const std::string& key, const std::string& reason);
  void check_settled();

  CoordinatorPolicy policy;
  Supervisor supervisor;
  Membership membership;
  Reachability reach;
  DataNodes data;
  std::map<AgentId, Agent> agents;  // those that are welcome

  std::set<int> fetched;  // hosts on which an agent was started again: the former one may come back as well

  std::map<AgentId, int> leaving;  // were told to stop, with this signal; still there while the generation is

  std::optional<Instant> supervisor_deadline;
  std::optional<Instant> check_agents_at;
  Duration stalled{};       // when this process last did not run
  Instant excused_until{};  // agents that were lost by then had not been answered
  std::optional<Instant> check_gone_at;
  std::optional<Instant> gather_at;  // ask the membership again
  std::optional<Instant> gather_notice_at;
  std::optional<Instant> announced;

  bool gathering = false;
  Instant gathering_since{};
  std::set<AgentId> prepared;               // agents whose workers have prepared --loader
  std::map<int, DataPrepared> prepared_by;  // by worker
  std::optional<Instant> preparation_told;  // when the user read of it last
  bool settling = false;
  bool finished = false;
  bool stop_seen = false;  // the system has told the coordinator itself to stop
  Generation generation{-1};
  Instant started{};
  std::map<AgentId, Member> members;  // of the generation at hand
  std::vector<AgentId> agent_of_node;
  std::vector<AgentId> agent_of_rank;
  bool gone_wanted = false;
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::vector<std::string> servers;  // by rank; empty where no ports are held for them

  std::vector<std::string> folders;             // the marks of folders that agents see; their places are groups
  std::map<std::string, Output> output_of;      // by the agent's instance, so that it may connect again
  std::map<int, WaitingOutput> waiting_output;  // by group
  std::set<AgentId> unsettled;                  // were asked to settle, and have not answered
  Generation output_generation{-1};             // the last one that had ranks
  std::string settle_error;
  int settled_files = 0;

  std::deque<Event> pending;
  bool supervising = false;
  Instant now{};
  std::vector<CoordinatorAction> actions;
};

}  // namespace taas::run
