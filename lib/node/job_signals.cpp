#include "node/job_signals.hpp"

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

namespace taas::node {
namespace {

/// SLURM signals the processes of a step one after the other.
constexpr auto kSoon = std::chrono::milliseconds(250);
/// And the machines of a job.
constexpr auto kOnAllMachines = std::chrono::milliseconds(500);

/// It does so itself, in a step's or a script's own process; a user's kill, or a terminal, is somebody else.
bool is_slurm(int sender) {
  std::ifstream file("/proc/" + std::to_string(sender) + "/comm");
  std::string name;
  return std::getline(file, name) && name == "slurmstepd";
}

/// In a terminal, for the launcher alone.
bool is_typed(int signal) { return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP || signal == SIGWINCH; }

}  // namespace

JobSignals::JobSignals(boost::asio::io_context& io, const std::vector<int>& signals, JobPlace place, Callback callback)
    : io_(io),
      place_(place),
      callback_(std::move(callback)),
      source_(io, signals, [this](int signal, Instant at, int sender) { hear(signal, at, sender); }) {}

void JobSignals::hear(int signal, Instant at, int sender) {
  const bool is_in_front = place_ == JobPlace::kFront && !is_typed(signal);
  if (is_in_front) return hold(signal, at + kOnAllMachines);
  const bool may_reach_ranks = place_ == JobPlace::kStep || place_ == JobPlace::kScript;
  if (may_reach_ranks && sender == ::getppid()) return hold(signal, at + kSoon);
  held_.erase(signal);
  callback_(signal, at, place_ == JobPlace::kStep || (place_ == JobPlace::kScript && is_slurm(sender)));
}

void JobSignals::hold(int signal, Instant until) {
  auto& timer = held_[signal];
  if (timer) return;
  timer = std::make_unique<Timer>(io_, [this, signal] {
    held_.erase(signal);
    callback_(signal, steady_now(), false);
  });
  timer->set(until);
}

}  // namespace taas::node
