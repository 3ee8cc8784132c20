#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "run/messages/messages.hpp"

namespace taas::node {

struct OutboxOptions {
  bool in_process = false;  ///< no link: what is said takes no time
  std::function<void(run::AgentMessage)> say;
  /// Told from the event loop: so many lines wait that no more should be made (true), and that there is room (false).
  std::function<void(bool)> on_crowded = [](bool) {};
};

/// What a node tells the coordinator. Lines for the console are gathered into messages, of which only so many are on
/// their way that a heartbeat behind them comes in time; the others wait here until the console has taken those.
/// Whatever else is said passes the lines that wait.
class Outbox {
 public:
  Outbox(boost::asio::io_context& io, OutboxOptions options);
  ~Outbox();

  void add(run::OutputText line);
  void say(run::AgentMessage message);
  /// Once all lines are shown, or the console has taken none for a while: then a remark says how many are left out.
  void say_last(run::AgentMessage message);
  /// The console has taken the earliest message that is on its way.
  void shown();
  /// There is a new link: nothing is on its way, and lines of former ranks are of no interest.
  void begin_anew();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
