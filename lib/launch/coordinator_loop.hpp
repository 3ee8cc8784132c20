#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/folders/held_folder.hpp"
#include "launch/output/journal.hpp"
#include "node/store_passage.hpp"
#include "plan/launch_plan.hpp"
#include "run/coordinator/coordinator.hpp"

namespace taas::launch {

/// One agent as the coordinator reaches it: over a link, or in this process.
class Downlink {
 public:
  virtual ~Downlink() = default;
  virtual void tell(const run::CoordinatorMessage& message) = 0;
};

struct CoordinatorLoopOptions {
  run::CoordinatorPolicy policy;
  plan::LaunchPlan plan;  ///< with all nodes there
  plan::Machine machine;
  run::RunStarted started;          ///< without its instant
  std::string output_directory;     ///< where the user finds what ranks wrote
  HeldFolder run_folder = {};       ///< where agents may send files to; none: they see the same one
  node::MeetingPlace meeting = {};  ///< of nodes that join: where ranks look for the store, as under torchrun
};

/// Drives run::Coordinator: the console, the journal, signals, time, and the agents.
class CoordinatorLoop {
 public:
  CoordinatorLoop(boost::asio::io_context& io, CoordinatorLoopOptions options, JournalFile journal);
  ~CoordinatorLoop();

  /// An agent has connected and proved itself; it is heard from now on. Its number is told back.
  run::AgentId add(std::unique_ptr<Downlink> downlink);
  void hear(run::AgentId agent, run::AgentMessage message);
  void hear_file(run::AgentId agent, std::string_view frame);
  void leave(run::AgentId agent, const std::string& reason, bool closed_by_agent);
  void host_failed(int order, const std::string& message);
  /// Called when an agent is to be started again on a host of the list.
  void set_on_start_agent(std::function<void(int order)> on_start_agent);
  /// Called when the agent of a host of the list has arrived.
  void set_on_arrival(std::function<void(int order)> on_arrival);
  /// Called once when nodes that are held may come.
  void set_on_release(std::function<void()> on_release);
  /// The job that they come from is over.
  void nodes_over(const std::string& why);
  /// One line to the user.
  void say(std::string text);

  /// Until the run is over, and all agents know of it that can be told. Returns what the launcher exits with.
  int execute();
  /// Somebody wanted the run to stop, or warned that it will have to.
  [[nodiscard]] bool told_to_stop() const;
  /// Where the store of the generation is whose ranks were started last; without an address before the first one.
  [[nodiscard]] const node::StorePlace& store_place() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::launch
