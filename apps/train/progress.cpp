#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace taas::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point instant) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - instant).count();
}

std::string accuracy_of(const Score& score) {
  return fmt::format("accuracy {:.2f} % ({}/{})", score.accuracy(), score.correct, score.count);
}

}  // namespace

Progress::Progress(int rank, int world_size, const Options& options)
    : speaks_(rank == 0), world_size_(world_size), options_(options) {}

void Progress::say(const std::string& line) const {
  if (!speaks_) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Progress::begin_epoch(int epoch, std::int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  epoch_start_ = shown_ = Clock::now();
}

bool Progress::wants_loss(std::int64_t step) const {
  const auto every = options_.log_every;
  return speaks_ && (step == steps_ || (every > 0 ? step % every == 0 : seconds_since(shown_) >= 2.0));
}

void Progress::show(std::int64_t step, double loss, std::int64_t samples) {
  shown_ = Clock::now();
  say(fmt::format("epoch {}/{} step {}/{} loss {:.3f} {:.0f} samples/s", epoch_ + 1, options_.epochs, step, steps_,
                  loss, static_cast<double>(samples * world_size_) / std::max(seconds_since(epoch_start_), 1e-9)));
}

void Progress::end_epoch(const Score& score) const {
  say(fmt::format("epoch {}/{} done in {:.1f} s: test loss {:.4f}, {}", epoch_ + 1, options_.epochs,
                  seconds_since(epoch_start_), score.loss, accuracy_of(score)));
}

void Progress::end_run(const Score& score) const {
  say(fmt::format("total time {:.1f} s, {}", seconds_since(start_), accuracy_of(score)));
}

}  // namespace taas::train
