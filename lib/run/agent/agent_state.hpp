#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/agent/agent.hpp"
#include "run/agent/clock_offset.hpp"

namespace taas::run {

/// The Agent's inside. What the coordinator says is in agent_orders.cpp, the link and its loss are in agent.cpp.
struct Agent::State {
  enum class Phase {
    kConnecting,
    kConnected,
    kFencing,  ///< the coordinator was lost: ranks are being killed, then the agent connects again
    kLeaving,  ///< as above, then the agent leaves
    kLeft,
  };

  State(AgentPolicy given, Hello first) : policy(given), hello(std::move(first)) {}

  // One overload an event.
  void on(const LinkUp& event);
  void on(const LinkDown& event);
  void on(const CoordinatorSaid& event);
  void on(const NodeSaid& event);
  void on(const AgentSignalled& event);
  void on(const DeadlineReached&);

  // One overload an order that is more than carried out.
  template <class Order>
  void obey(const Order& order) {
    perform(order);
  }
  void obey(const HeartbeatEcho& echo);
  void obey(const ProbeAddresses& order);
  void obey(const StartRanks& order);
  void obey(const SignalRanks& order);
  void obey(const KillGeneration& order) { end(order.generation, order); }
  void obey(const SweepGeneration& order) { end(order.generation, order); }
  void obey(const Dismissed& order);

  void begin(const StartRanks& order);
  void end(Generation generation, const CoordinatorMessage& order);
  void tell(const AgentMessage& message);
  void ended(Generation generation, const AgentMessage& message);

  void check_fence();
  void fence();
  void kill();
  void connect();
  void leave(int exit_code, std::string reason);
  void beat();
  void announce_deadline();
  void tell_why_nobody_answers();

  void perform(CoordinatorMessage message) { actions.emplace_back(Perform{std::move(message)}); }
  void send(AgentMessage message) { actions.emplace_back(Send{std::move(message)}); }

  AgentPolicy policy;
  Hello hello;
  Phase phase = Phase::kConnecting;
  ClockOffset clock;
  std::optional<Generation> living;   // has been started, and is not known to be gone
  Generation latest{-1};              // that was ever started here
  std::optional<StartRanks> pending;  // when the living one is gone
  int probe = 0;                      // the last one asked for
  std::uint64_t beats = 0;
  Instant answered{};  // when the last heartbeat that was answered had been sent
  bool ever_connected = false;
  int attempts = 0;         // to connect, since the link was lost
  std::string unreachable;  // why the last attempt to connect failed
  std::string told;         // of these reasons, the last one that the user was told
  std::optional<Instant> notice_at;
  int last_signal = 0;
  Instant last_signal_at{};
  Leave parting{};
  std::optional<Instant> beat_at;
  std::optional<Instant> connect_at;
  std::optional<Instant> give_up_at;
  std::optional<Instant> kill_at;
  std::optional<Instant> announced;
  Instant now{};
  std::vector<AgentAction> actions;
};

/// The message with all its instants on the coordinator's clock.
AgentMessage on_coordinators_clock(AgentMessage message, const ClockOffset& clock);

}  // namespace taas::run
