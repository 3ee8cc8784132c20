#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/agent/clock_offset.hpp"
#include "run/agent/coordinator_search.hpp"
#include "run/agent/heartbeats.hpp"
#include "run/agent/node_generation.hpp"

namespace taas::run {

/// One node's part of the run's logic: obeys the coordinator, keeps at most one generation alive, and kills it when the
/// coordinator has not been heard for too long (the fence), so that a run never has two generations at once. Pure.
class Agent {
 public:
  Agent(AgentPolicy policy, Hello hello);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  std::vector<AgentAction> handle(const AgentEvent& event);

 private:
  enum class Phase {
    kConnecting,
    kConnected,
    kFencing,  ///< the coordinator was lost: ranks are being killed, then the agent connects again
    kLeaving,  ///< as above, then the agent leaves
    kLeft,
  };

  // One overload an event.
  void on(const LinkUp& event);
  void on(const LinkDown& event);
  void on(const CoordinatorSaid& event);
  void on(const NodeSaid& event);
  void on(const AgentSignalled& event);
  void on(const DeadlineReached&);

  // What the coordinator says: one overload a message that is more than carried out.
  void obey(const CoordinatorMessage& message) {
    std::visit([this](const auto& said) { on_message(said); }, message);
  }
  template <class Message>
  void on_message(const Message& message) {
    execute(message);
  }
  void on_message(const HeartbeatEcho& message) { clock_.add(message.sent, message.received, now_); }
  void on_message(const ProbeAddresses& message);
  void on_message(const StartRanks& message);
  void on_message(const SignalRanks& message);
  void on_message(const KillGeneration& message) { end(message.generation, message); }
  void on_message(const SweepGeneration& message) { end(message.generation, message); }
  void on_message(const Dismissed& message) {
    send(Goodbye{});
    leave(message.exit_code, message.reason);
  }

  void end(Generation generation, const CoordinatorMessage& message);
  void on_gone(Generation generation, const AgentMessage& message);
  void tell(const AgentMessage& message);

  void check_fence();
  void fence();
  void kill() { execute(generation_.kill(now_)); }
  void connect();
  void leave(int exit_code, std::string reason);
  void beat();
  void announce_deadline();
  [[nodiscard]] std::optional<Instant> next_deadline() const;

  void execute(CoordinatorMessage message) { actions_.emplace_back(Perform{std::move(message)}); }
  void send(AgentMessage message) { actions_.emplace_back(Send{std::move(message)}); }

  AgentPolicy policy_;
  Hello hello_;
  Phase phase_ = Phase::kConnecting;
  ClockOffset clock_;
  CoordinatorSearch search_;
  Heartbeats heartbeats_;
  NodeGeneration generation_;
  std::vector<CoordinatorMessage> held_;
  int probe_ = 0;  // the last one asked for
  int last_signal_ = 0;
  Instant last_signal_at_{};
  Leave parting_{};
  std::optional<Instant> announced_;
  Instant now_{};
  std::vector<AgentAction> actions_;
};

}  // namespace taas::run
