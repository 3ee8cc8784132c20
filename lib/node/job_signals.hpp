#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/timer.hpp"
#include "proc/spawn/signals.hpp"

namespace taas::node {

/// Where SLURM has this process, and so who else is sent its signals.
enum class JobPlace {
  kNone,    ///< it is in no job, or ranks are not
  kStep,    ///< in a step, as the ranks of this machine
  kScript,  ///< in a job script, or a shell of salloc, and so are the ranks
  kFront,   ///< the same, but ranks are in a step: its agents say so when SLURM signals that
};

/// The signals that this process is sent, and whether ranks have got them too. SLURM signals every process of a step,
/// whatever its group or session: ranks must not be told the same a second time, since that would break off a handler
/// that raises. In a step this process has then been sent the signal by somebody else than its keeper, which passes on
/// what comes to itself alone, as from a user's kill; in a script it is SLURM that has sent it. In front of a step this
/// process waits whether agents hear the same: what is told here afterwards is only theirs once more.
class JobSignals {
 public:
  using Callback = std::function<void(int signal, Instant, bool reached_ranks)>;
  JobSignals(boost::asio::io_context& io, const std::vector<int>& signals, JobPlace place, Callback callback);

 private:
  void hear(int signal, Instant at, int sender);
  void hold(int signal, Instant until);

  boost::asio::io_context& io_;
  JobPlace place_;
  Callback callback_;
  std::map<int, std::unique_ptr<Timer>>
      held_;  // SLURM may have signalled this process, or its keeper, a moment earlier
  SignalSource source_;
};

}  // namespace taas::node
