#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/events/agent_id.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

/// In place of an order: all CPU machines, which one command starts.
inline constexpr int kEveryDataNode = -2;

struct DataNodesPolicy {
  int nodes = 0;                   ///< that were asked for
  int first_order = 0;             ///< Hello::order of the first
  std::vector<std::string> names;  ///< from first_order on, for people
};

/// The CPU machines of a run over several machines: which of them are there, and the list of their workers, in which a
/// worker keeps its place whatever becomes of its machine. A machine that was lost is started again after a pause that
/// doubles. Pure.
class DataNodes {
 public:
  explicit DataNodes(DataNodesPolicy policy) : policy_(std::move(policy)) {}

  [[nodiscard]] bool owns_order(int order) const;
  [[nodiscard]] bool has(AgentId agent) const { return of_agent_.contains(agent); }
  /// The agent there with this order, if there is one.
  [[nodiscard]] std::optional<AgentId> holder(int order) const;
  void arrive(AgentId agent, const Hello& hello);
  /// Its workers listen on these ports.
  void ready(AgentId agent, const std::vector<std::uint16_t>& ports);
  void lose(AgentId agent, Instant at);
  /// It will not take part.
  void refuse(AgentId agent);
  void fail(int order);
  /// Its workers have prepared --loader.
  void prepared(AgentId agent);

  [[nodiscard]] const DataWorkers& list() const { return list_; }
  /// Nobody is waited for any more: each machine is there, or will not be.
  [[nodiscard]] bool settled() const;
  /// No machine is left that could come.
  [[nodiscard]] bool none_left() const {
    return policy_.nodes > 0 && failed_.size() >= static_cast<std::size_t>(policy_.nodes);
  }
  /// None of those that came is there, and what was to start them, at first or again, has ended.
  [[nodiscard]] bool all_lost() const { return command_ended_ && of_agent_.empty() && !seen_.empty(); }
  /// Every machine that is there has prepared --loader.
  [[nodiscard]] bool all_prepared() const;
  /// "hostc, hostd": those that have not come.
  [[nodiscard]] std::string missing() const;

  std::vector<int> hosts_to_start(Instant now);
  [[nodiscard]] std::optional<Instant> next_start() const;

 private:
  struct Node {
    Hello hello;
    bool ready = false;
    bool prepared = false;
  };
  struct Loss {
    Duration pause{};
    std::optional<Instant> start_at;
  };

  [[nodiscard]] int key_of(const Hello& hello);
  [[nodiscard]] std::string name_of(const Hello& hello) const;
  void remove(AgentId agent);

  DataNodesPolicy policy_;
  std::map<AgentId, Node> of_agent_;
  std::map<std::string, int> keys_;                 // machines without an order, by name: negative numbers
  std::map<int, std::vector<std::size_t>> places_;  // in the list, by order or key
  std::map<int, Loss> losses_;
  std::set<int> failed_;
  std::set<int> seen_;
  bool command_ended_ = false;  // the one that starts all of them
  DataWorkers list_;
};

}  // namespace taas::run
