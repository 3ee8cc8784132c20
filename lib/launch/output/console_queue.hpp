#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "run/events/agent_id.hpp"
#include "run/messages/messages.hpp"

namespace taas::launch {

/// What agents have sent for the console. One message is shown in a turn of the event loop, and none while the console
/// is held: heartbeats never wait for a terminal, nor for the work that showing is.
class ConsoleQueue {
 public:
  struct Callbacks {
    std::function<void(const run::Output&)> show;
    std::function<void(run::AgentId)> on_shown;  ///< once for each message, in their order
  };
  ConsoleQueue(boost::asio::io_context& io, Callbacks callbacks);
  ~ConsoleQueue();

  void add(run::AgentId from, run::Output output);
  /// The console's reader falls behind, or has caught up.
  void hold(bool hold);
  /// Something else is about to be shown: what came before it goes first, as long as that takes no time to speak of.
  void keep_order();
  /// The run is over.
  void show_all();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::launch
