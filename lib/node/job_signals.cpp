#include "node/job_signals.hpp"

#include <unistd.h>

#include <utility>

namespace taas::node {
namespace {

/// SLURM signals the processes of a step one after the other.
constexpr auto kSoon = std::chrono::milliseconds(250);

}  // namespace

JobSignals::JobSignals(boost::asio::io_context& io, const std::vector<int>& signals, bool in_step, Callback callback)
    : io_(io),
      in_step_(in_step),
      callback_(std::move(callback)),
      source_(io, signals, [this](int signal, Instant at, int sender) { hear(signal, at, sender); }) {}

void JobSignals::hear(int signal, Instant at, int sender) {
  if (!in_step_) return callback_(signal, at, false);
  if (sender != ::getppid()) {
    held_.erase(signal);
    return callback_(signal, at, true);
  }
  auto& timer = held_[signal];
  if (timer) return;
  timer = std::make_unique<Timer>(io_, [this, signal] {
    held_.erase(signal);
    callback_(signal, steady_now(), false);
  });
  timer->set(at + kSoon);
}

}  // namespace taas::node
