#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/launch.hpp"
#include "node/node.hpp"
#include "run/agent/agent.hpp"

namespace taas::node {

/// How an agent reaches its coordinator: a link, or a call in the same process.
class Uplink {
 public:
  virtual ~Uplink() = default;
  /// Begins to connect. The agent is told LinkUp, or LinkDown with the reason.
  virtual void connect() = 0;
  virtual void send(const run::AgentMessage& message) = 0;
  /// Says it over a connection of its own, unless the former one is still being tried. The agent is told the answer.
  /// Only where a link can be silent.
  virtual void ask(const run::Heartbeat& /*heartbeat*/) {}
  /// As run/messages/file_frames.hpp has it; lost where there is no link.
  virtual void send_file(std::string frame) = 0;
  /// The last call: what was sent goes out, and then the link is closed.
  virtual void close(std::function<void()> on_closed) = 0;
};

struct AgentLoopOptions {
  run::AgentPolicy policy;
  run::Hello hello;
  plan::Machine machine;
  std::vector<std::string> store_addresses;  ///< as in NodeOptions
  std::string listen_address;                ///< as in NodeOptions
  int data_workers = 0;                      ///< of a data node; 0: as the settings say, or one for each core
  /// What ranks run; a program that is not on this machine is an error.
  std::function<Result<plan::ResolvedProgram>(const Launch&, plan::Machine&)> resolve;
};

/// Drives run::Agent on this machine: the link to the coordinator, the node, and time.
class AgentLoop {
 public:
  AgentLoop(boost::asio::io_context& io, AgentLoopOptions options);
  ~AgentLoop();

  /// Before the first event.
  void set_uplink(std::unique_ptr<Uplink> uplink);
  /// Called once; afterwards nothing is sent.
  void set_on_leave(std::function<void(run::Leave)> on_leave);
  /// What the user of this node's console is to know; by default nobody is told.
  void set_on_notice(std::function<void(const std::string&)> on_notice);
  /// A node that is prepared already; otherwise Welcome makes one.
  void set_node(std::unique_ptr<Node> node);
  void begin();
  void feed(run::AgentEvent event);
  /// After it has left: the coordinator is to have its last words.
  void close(std::function<void()> on_closed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::node
