#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/coordinator/decisions.hpp"
#include "run/coordinator/silence.hpp"

namespace taas::run {

/// What an agent has said of itself.
struct KnownAgent {
  Hello hello;
  std::uint16_t store_port = 0;
  std::vector<std::uint16_t> rank_ports = {};
  std::string folder = {};  ///< the mark of the run's folder there
  std::string view = {};    ///< as in Ready
};

/// "hostb", or words for one that did not say its name.
std::string name_of(const Hello& hello);

/// The agents that are connected and welcome, what is sent to them, and which of those that were dismissed have not
/// answered yet.
class Agents {
 public:
  Agents(SilencePolicy policy, Decisions& decisions) : decisions_(decisions), silence_(policy) {}

  void add(AgentId agent, const Hello& hello);
  void on(AgentId agent, const Heartbeat& message);
  /// From an agent whose link is silent, over a connection that is no agent's: is answered there.
  void answer_aside(AgentId connection, const Heartbeat& message);
  /// It is prepared for ranks.
  void ready(AgentId agent, const Ready& message);
  KnownAgent remove(AgentId agent);
  /// Tells it why it is not wanted, and forgets it.
  void dismiss(AgentId agent, const std::string& reason, int exit_code);
  /// The run is over, which each of them has to know: one whose link breaks before its answer comes back for it.
  void dismiss_all(const Dismissed& words);
  void on(AgentId agent, const Goodbye&) { unanswered_.erase(agent); }
  /// Its link is gone.
  void left(AgentId agent);
  /// It comes after the run was over, perhaps back.
  void dismiss_latecomer(AgentId agent, const Hello& hello, const Dismissed& words);
  [[nodiscard]] bool all_have_answered() const { return unanswered_.empty() && returning_.empty(); }

  [[nodiscard]] bool empty() const { return known_.empty(); }
  [[nodiscard]] bool contains(AgentId agent) const { return known_.contains(agent); }
  [[nodiscard]] const KnownAgent& at(AgentId agent) const { return known_.at(agent); }
  [[nodiscard]] const std::map<AgentId, KnownAgent>& all() const { return known_; }
  /// The process with this Hello::instance, if it is connected.
  [[nodiscard]] std::optional<AgentId> connected(const std::string& instance) const;
  /// Names the agent's process, so that it may connect again.
  [[nodiscard]] std::string key_of(AgentId agent) const;

  /// Only to an agent that is still there.
  void send(AgentId agent, const CoordinatorMessage& message);
  void send_all(const CoordinatorMessage& message);

  [[nodiscard]] Silence& silence() { return silence_; }
  [[nodiscard]] const Silence& silence() const { return silence_; }

 private:
  Decisions& decisions_;
  std::map<AgentId, KnownAgent> known_;
  std::map<AgentId, std::string> unanswered_;  // dismissed ones and their keys
  std::set<std::string> returning_;            // keys of members whose link broke when they were dismissed
  Silence silence_;
};

}  // namespace taas::run
