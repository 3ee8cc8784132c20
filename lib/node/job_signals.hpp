#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/timer.hpp"
#include "proc/spawn/signals.hpp"

namespace taas::node {

/// The signals that this process is sent, and whether ranks have got them too. SLURM signals every process of a step,
/// whatever its group or session: ranks must not be told the same a second time, since that would break off a handler
/// that raises. This process has then been sent the signal by somebody else than its keeper, which passes on what comes
/// to itself alone, as from a user's kill.
class JobSignals {
 public:
  using Callback = std::function<void(int signal, Instant, bool reached_ranks)>;
  /// `in_step`: SLURM has started this process.
  JobSignals(boost::asio::io_context& io, const std::vector<int>& signals, bool in_step, Callback callback);

 private:
  void hear(int signal, Instant at, int sender);

  boost::asio::io_context& io_;
  bool in_step_;
  Callback callback_;
  std::map<int, std::unique_ptr<Timer>> held_;  // came from the keeper, which SLURM may have signalled a moment earlier
  SignalSource source_;
};

}  // namespace taas::node
