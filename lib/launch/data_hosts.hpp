#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "launch/coordinator_loop.hpp"
#include "launch/local_run.hpp"

namespace taas::launch {

/// Agents on CPU machines for a run whose ranks are all in this process: where they connect, and the commands that
/// start them.
class DataHostLinks {
 public:
  /// Listens; nobody is heard before start().
  static Result<std::unique_ptr<DataHostLinks>> listen(boost::asio::io_context& io, const LocalRunOptions& options);
  ~DataHostLinks();

  void start(CoordinatorLoop& run, Family& family);
  /// The run is over: waits, for a bounded time, until the agents that were dismissed have ended.
  void part();

 private:
  struct State;
  explicit DataHostLinks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taas::launch
