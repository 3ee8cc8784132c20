#include "run/coordinator/loader_wait.hpp"

#include <fmt/format.h>

#include <utility>

namespace taas::run {
namespace {

constexpr auto kTellEvery = std::chrono::seconds(10);
constexpr double kMegabyte = 1e6;
constexpr double kGigabyte = 1e9;

}  // namespace

/// "1234 batches, 5.68 GB".
std::string LoaderWait::sum() const {
  std::int64_t batches = 0;
  std::int64_t bytes = 0;
  for (const auto& [worker, told] : of_worker_) {
    batches += told.batches;
    bytes += told.bytes;
  }
  auto size = static_cast<double>(bytes);
  if (size < kGigabyte) return fmt::format("{} batches, {:.1f} MB", batches, size / kMegabyte);
  return fmt::format("{} batches, {:.2f} GB", batches, size / kGigabyte);
}

bool LoaderWait::complete() const { return simulated() ? !prepared_.empty() : machines_.all_prepared(); }

std::optional<Instant> LoaderWait::give_up_at(Instant gathering_since) const {
  if (!policy_.nodes_are_held) return gathering_since + policy_.gather_timeout;
  if (!first_machine_at_) return std::nullopt;
  return *first_machine_at_ + policy_.gather_timeout;
}

LoaderCheck LoaderWait::check(Instant gathering_since) {
  if (policy_.loader.empty()) return {.prepared = true};
  if (complete()) {
    if (announced()) decisions_.notify(fmt::format("prepared {}: {}", policy_.loader, sum()));
    return {.prepared = true};
  }
  auto now = decisions_.now();
  auto give_up = give_up_at(gathering_since);
  bool waits_for_machines = !simulated() && !machines_.settled();
  if (waits_for_machines && give_up && *give_up <= now) {
    return {.failure = fmt::format("--loader {}: CPU machines are missing: {}", policy_.loader, machines_.missing())};
  }
  if (!std::exchange(told_at_, told_at_.value_or(now))) {
    decisions_.notify(fmt::format("preparing {} before ranks start", policy_.loader));
  }
  return {.ask_again_at = waits_for_machines ? give_up : std::nullopt};
}

void LoaderWait::on(const DataPrepared& message, bool waiting) {
  of_worker_[message.worker] = message;
  auto now = decisions_.now();
  if (!waiting || !told_at_ || now - *told_at_ < kTellEvery) return;
  told_at_ = now;
  decisions_.notify(fmt::format("preparing {}: {} so far", policy_.loader, sum()));
}

std::string LoaderWait::hopeless() const {
  if (policy_.nodes_are_held && machines_.all_lost()) {
    return fmt::format("--loader {}: no CPU machine is left, and what was prepared is gone with them", policy_.loader);
  }
  if (policy_.loader.empty() || !machines_.none_left()) return "";
  return fmt::format("--loader {}: no CPU machine is there to prepare it", policy_.loader);
}

}  // namespace taas::run
