#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/coordinator/admission.hpp"
#include "run/coordinator/agent_signals.hpp"
#include "run/coordinator/coordinator_events.hpp"
#include "run/coordinator/cpu_machines.hpp"
#include "run/coordinator/gathering.hpp"
#include "run/coordinator/members.hpp"
#include "run/coordinator/output_routing.hpp"
#include "run/coordinator/policy.hpp"
#include "run/coordinator/silent_mistakes.hpp"
#include "run/supervisor/supervisor.hpp"

namespace taas::run {

/// The run's logic over all nodes: who is there, which of them make up a generation, and what the Supervisor decides
/// about its ranks. It passes each event to the parts that it concerns, and what they report to the Supervisor. Pure.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorPolicy policy);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  std::vector<CoordinatorAction> handle(const CoordinatorEvent& event);

 private:
  // What happens: one overload an event.
  void on(const Event& event);
  void on(const AgentArrived& event);
  void on(const AgentSaid& event);
  void on(const AgentLeft& event);
  void on(const HostFailed& event);
  void on(const OutputPlaced& event) { output_.on(event); }
  void on(const CoordinatorStalled& event);
  void on(const NodesOver& event) { gathering_.on(event); }
  void on_deadline();

  // What an agent says: one overload a message.
  template <class Message>
  void on(AgentId /*agent*/, const Message& /*message*/) {}
  void on(AgentId agent, const Heartbeat& message) { agents_.on(agent, message); }
  void on(AgentId agent, const Ready& message);
  void on(AgentId agent, const Refused& message);
  void on(AgentId agent, const AddressesReached& message) { gathering_.on(agent, message); }
  void on(AgentId agent, const Signalled& message);
  void on(AgentId agent, const RankSpawned& message) { members_.on(agent, message); }
  void on(AgentId agent, const RankSpawnFailed& message) { members_.on(agent, message); }
  void on(AgentId agent, const StoreReached& message) { members_.on(agent, message); }
  void on(AgentId agent, const RankJoined& message) { members_.on(agent, message); }
  void on(AgentId agent, const RankExited& message) { members_.on(agent, message); }
  void on(AgentId agent, const RankLingers& message) { members_.on(agent, message); }
  void on(AgentId agent, const RankTrained& message);
  void on(AgentId agent, const GenerationGone& message) { members_.on(agent, message); }
  void on(AgentId agent, const OutputSettled& message) { output_.on(agent, message); }
  void on(AgentId agent, const AskWriters& message) { output_.on(agent, message); }
  void on(AgentId agent, const WritersSeen& message) { output_.on(agent, message); }
  void on(AgentId /*agent*/, const DataPrepared& message) { machines_.loader().on(message, gathering_.active()); }
  void on(AgentId agent, const LoaderPrepared& message);
  void on(AgentId agent, const LoaderFailed& message);
  void on(AgentId agent, const Goodbye& message) { agents_.on(agent, message); }
  void on(AgentId agent, const SignalAnswer& message);

  // What the Supervisor decides: one overload an action.
  template <class Decided>
  void execute(const Decided& decided) {
    decisions_.emit(Action(decided));
  }
  void execute(const SetDeadline& decided) { supervisor_deadline_ = decided.at; }
  void execute(const ClearDeadline&) { supervisor_deadline_.reset(); }
  void execute(const GatherNodes& decided);
  void execute(const StartGeneration& decided);
  void execute(const SignalRanks& decided);
  void execute(const KillGeneration& decided) { execute_on_members(decided); }
  void execute(const SweepGeneration& decided) { execute_on_members(decided); }
  void execute(const RequestStop& decided);
  void execute(const SettleOutput& decided) {
    decisions_.emit(Action(decided));
    output_.settle(decided.publish);
  }
  void execute(const ReportFailure& decided);
  void execute(const Finish& decided);
  template <class Decided>
  void execute_on_members(const Decided& decided) {
    decisions_.emit(Action(decided));
    members_.execute(decided);
  }

  void supervise();
  void await_answers();
  void see_off(const CoordinatorEvent& event);
  void announce_deadline();
  [[nodiscard]] std::optional<Instant> next_deadline() const;

  void reject(AgentId agent, const Hello& hello, const std::string& why);
  void dismiss_machine(AgentId agent, int signal);
  void stop_without_machines();
  void turn_away(AgentId agent, const std::string& why);
  void let_go(AgentId agent, int signal);
  void lose(AgentId agent, AgentLoss loss);
  void lose_member(AgentId agent, const Hello& hello, const AgentLoss& loss, Blame blame);
  void look_for_silence();
  void tell_returned();
  [[nodiscard]] std::vector<NodeIndex> nodes_of(const std::vector<AgentId>& agents) const;
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<AgentId>& agents) const;
  void start_lost_hosts();
  void on_changed_machines();

  CoordinatorPolicy policy_;
  Supervisor supervisor_;
  Decisions decisions_;
  Agents agents_;
  AgentSignals signals_;
  Membership membership_;
  CpuMachines machines_;
  Admission admission_;
  Members members_;
  Gathering gathering_;
  OutputRouting output_;
  SilentMistakes mistakes_;
  std::optional<Instant> supervisor_deadline_;
  std::optional<Instant> announced_;
  Dismissed farewell_;  // with the verdict
  Instant part_at_{};
};

}  // namespace taas::run
