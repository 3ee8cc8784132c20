#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "run/messages.hpp"

namespace taas::hosts {

/// Gathers lines that come in one turn of the event loop into one message, and keeps everything in order: what a rank
/// printed is told before its end.
class Outbox {
 public:
  Outbox(boost::asio::io_context& io, std::function<void(run::AgentMessage)> say);
  ~Outbox();

  void add(run::OutputText line);
  void say(run::AgentMessage message);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::hosts
