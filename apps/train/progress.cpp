#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace taas::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point instant) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - instant).count();
}

/// Under taas-run the file is written to a staging folder, and published elsewhere: the launcher says where.
std::string shown_path(const Options& options) {
  const char* staging = std::getenv("TAAS_OUTPUT_DIR");
  if (staging == nullptr || options.output != staging) return options.checkpoint();
  return std::filesystem::path(options.checkpoint()).filename();
}

std::string accuracy_of(const Score& score) {
  return fmt::format("accuracy {:.2f} % ({}/{})", score.accuracy(), score.correct, score.count);
}

}  // namespace

Progress::Progress(int rank, int world_size, int epochs, std::int64_t log_every)
    : speaks_(rank == 0),
      terminal_(::isatty(STDOUT_FILENO) == 1 && log_every == 0),
      world_size_(world_size),
      epochs_(epochs),
      log_every_(log_every) {}

void Progress::begin_run(const std::string& device, std::string_view backend, const std::string& examples,
                         const Options& options) {
  say(fmt::format("training on {} rank{} ({}, {}), batch {} per rank; {}", world_size_, world_size_ == 1 ? "" : "s",
                  device, backend == "none" ? "alone" : backend, options.batch_size, examples));
  if (!options.learns_digits() || options.parallel != "ddp") {
    say(fmt::format("model {}, parallel {}", options.model, options.parallel));
  }
  if (options.resume) say(fmt::format("going on from {}", *options.resume));
}

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
  if (speaks_ && log_every_ > 0) return step % log_every_ == 0 || step == steps_;
  return speaks_ && (step == steps_ || seconds_since(shown_) >= (terminal_ ? 0.1 : 2.0));
}

void Progress::show(std::int64_t step, double loss, std::int64_t samples) {
  if (!speaks_) return;
  shown_ = Clock::now();
  auto rate = static_cast<double>(samples * world_size_) / std::max(seconds_since(epoch_start_), 1e-9);
  auto line =
      fmt::format("epoch {}/{} step {}/{} loss {:.3f} {:.0f} samples/s", epoch_ + 1, epochs_, step, steps_, loss, rate);
  if (terminal_) {
    fmt::print("\r{:<78}{}", line, step == steps_ ? "\n" : "");
    std::fflush(stdout);
  } else {
    say(line);
  }
}

void Progress::end_epoch(const std::optional<Score>& score) const {
  auto result = score ? fmt::format(": test loss {:.4f}, {}", score->loss, accuracy_of(*score)) : "";
  say(fmt::format("epoch {}/{} done in {:.1f} s{}", epoch_ + 1, epochs_, seconds_since(epoch_start_), result));
}

void Progress::end_run(const std::optional<Score>& score, const Options& options) const {
  if (!options.output.empty()) say(fmt::format("checkpoint: {}", shown_path(options)));
  say(fmt::format("total time {:.1f} s{}", seconds_since(start_), score ? ", " + accuracy_of(*score) : ""));
}

}  // namespace taas::train
