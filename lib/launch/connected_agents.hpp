#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/ids.hpp"
#include "launch/coordinator_loop.hpp"
#include "run/messages/messages.hpp"

namespace taas::launch {

/// The agents that this process has a link to, and what they are called in front of the user.
class ConnectedAgents {
 public:
  run::AgentId add(std::unique_ptr<Downlink> downlink);
  /// False: it had gone already.
  bool drop(run::AgentId agent);
  /// Null: it has gone.
  [[nodiscard]] Downlink* find(run::AgentId agent) const;

  /// From now on the agent's remarks name its host. Data workers say where they are themselves.
  void note_host(run::AgentId agent, const run::Hello& hello);
  [[nodiscard]] std::string with_host(run::AgentId agent, const std::string& text) const;

 private:
  std::map<run::AgentId, std::unique_ptr<Downlink>> agents_;
  std::map<run::AgentId, std::string> hosts_;  // of those with ranks; kept when they have gone
  int last_ = -1;
};

}  // namespace taas::launch
