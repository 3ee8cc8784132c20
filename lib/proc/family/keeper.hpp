#pragma once

#include <functional>
#include <memory>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

/// The agent's view of its keeper: a socket whose other end goes with it, and on which it asks for a sign of life.
class Lifeline {
 public:
  explicit Lifeline(Fd socket) : socket_(std::move(socket)) {}
  /// Another one to the same keeper, for an event loop that comes after the first.
  [[nodiscard]] Result<Lifeline> twin() const;
  /// From now on the event loop answers the keeper, and calls back once when that is gone: then the agent kills its
  /// descendants and exits. Until this is called the kernel kills the agent with its keeper, so call it before the
  /// first rank is started.
  void on_keeper_death(boost::asio::io_context& io, std::function<void()> callback);

 private:
  Fd socket_;
};

/// Splits the process in two, so that nothing outlives the run even when half of it is killed with SIGKILL. Call it at
/// the very start of main, before there is a thread or an event loop. It returns in the child only.
///
/// The parent, whose number the user knows, becomes the *keeper*. It passes signals on to its child (INT, TERM, QUIT,
/// HUP unless ignored, USR1, USR2, CONT, WINCH) and ends with the child's exit code, or 128 + the signal that killed
/// the child. What the child left running has then become the keeper's, and it kills that first. A child that is
/// stopped when it is told to end is continued, and one whose event loop does not answer for ten seconds then is
/// killed.
///
/// The child becomes the *agent*: it leads a process group of its own, so that Ctrl-C reaches it once, through the
/// keeper; orphans below it become its children; it may write to its terminal from the background.
Result<Lifeline> become_kept();

}  // namespace taas
