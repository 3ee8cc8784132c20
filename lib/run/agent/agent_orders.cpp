#include <utility>

#include "run/agent/agent_state.hpp"

namespace taas::run {

/// Only a connected agent obeys: what comes later belongs to a link that it has given up.
void Agent::State::on(const CoordinatorSaid& event) {
  if (phase != Phase::kConnected) return;
  std::visit([this](const auto& order) { obey(order); }, event.message);
}

void Agent::State::obey(const HeartbeatEcho& echo) { clock.add(echo.sent, echo.received, now); }

void Agent::State::obey(const ProbeAddresses& order) {
  probe = order.probe;
  perform(order);
}

/// While an older generation lives the new one waits for its end.
void Agent::State::obey(const StartRanks& order) {
  bool newer = order.generation > latest && (!pending || order.generation > pending->generation);
  if (!newer) return;
  if (!living) return begin(order);
  pending = order;
  kill();
}

void Agent::State::begin(const StartRanks& order) {
  living = latest = order.generation;
  perform(order);
}

void Agent::State::obey(const SignalRanks& order) {
  if (living == order.generation) perform(order);
}

/// A generation that does not live here, or never did, is gone.
void Agent::State::end(Generation generation, const CoordinatorMessage& order) {
  if (living == generation) return perform(order);
  if (pending && pending->generation == generation) {
    latest = generation;
    pending.reset();
  }
  send(on_coordinators_clock(GenerationGone{generation, now}, clock));
}

void Agent::State::obey(const Dismissed& order) { leave(order.exit_code, order.reason); }

namespace {

/// One overload a message with instants.
class Converter {
 public:
  explicit Converter(const ClockOffset& clock) : clock_(clock) {}

  template <class Message>
  void operator()(Message& message) const {
    if constexpr (requires { message.at; }) shift(message.at);
  }
  void operator()(RankExited& message) const {
    shift(message.at);
    shift(message.evidence.first_error_at);
  }
  void operator()(Output& message) const {
    for (auto& line : message.lines) shift(line.at);
  }

 private:
  void shift(Instant& at) const { at = clock_.to_coordinator(at); }

  const ClockOffset& clock_;
};

}  // namespace

AgentMessage on_coordinators_clock(AgentMessage message, const ClockOffset& clock) {
  std::visit(Converter(clock), message);
  return message;
}

}  // namespace taas::run
