#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "run/events/agent_id.hpp"

namespace taas::run {

/// Which addresses of the first node the other nodes can reach: measured, not guessed. What is known stays known as
/// long as the first node keeps its agent.
class Reachability {
 public:
  void aim(AgentId target, std::vector<std::string> addresses, std::uint16_t port);
  /// Those of `agents` that have not been asked yet; they count as asked from now on.
  std::vector<AgentId> to_ask(const std::vector<AgentId>& agents, Instant now);
  /// To the probe with this number; an answer to an earlier one says nothing of the first node that there is now.
  void answer(AgentId agent, int probe, std::vector<std::string> reached);
  /// It is gone and will not answer.
  void forget(AgentId agent) { asked_.erase(agent); }
  /// Who has not answered until `now` reaches nothing.
  void expire(Instant now);
  [[nodiscard]] bool complete(const std::vector<AgentId>& agents) const;
  /// Somebody was asked and has not answered.
  [[nodiscard]] bool waiting() const { return !asked_.empty(); }
  /// When the first of those that have not answered is given up.
  [[nodiscard]] std::optional<Instant> next_expiry() const;

  /// The first address that all of them reach.
  [[nodiscard]] std::optional<std::string> common(const std::vector<AgentId>& agents) const;
  /// The one that reaches the fewest addresses. All have answered.
  [[nodiscard]] AgentId odd_one_out(const std::vector<AgentId>& agents) const;

  [[nodiscard]] AgentId target() const { return target_; }
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int probe() const { return probe_; }

 private:
  [[nodiscard]] bool reaches(AgentId agent, const std::string& address) const;

  AgentId target_{-1};
  std::vector<std::string> addresses_;
  std::uint16_t port_ = 0;
  int probe_ = 0;
  std::map<AgentId, Instant> asked_;
  std::map<AgentId, std::vector<std::string>> reached_;
};

}  // namespace taas::run
