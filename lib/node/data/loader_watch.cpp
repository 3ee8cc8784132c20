#include "node/data/loader_watch.hpp"

#include <fmt/format.h>

namespace taas::node {
namespace {

constexpr auto kNewsEvery = std::chrono::seconds(1);

}  // namespace

void LoaderWatch::begin(int workers, std::int64_t buffer_bytes) {
  if (!loader_.empty()) preparation_.emplace(workers, buffer_bytes);
}

bool LoaderWatch::update(const run::DataPrepared& told) {
  if (preparation_) preparation_->update(told);
  auto& last = told_[told.worker];
  if (!told.done && told.at - last < kNewsEvery) return false;
  last = told.at;
  return true;
}

std::optional<run::AgentMessage> LoaderWatch::check() {
  if (!preparation_ || failed_ || !preparation_->complete()) return std::nullopt;
  preparation_.reset();
  outcome_ = run::LoaderPrepared{};
  return outcome_;
}

std::optional<run::AgentMessage> LoaderWatch::ended(const DataWorkerEnd& end) {
  if (preparation_ && !failed_ && !end.killed && !preparation_->began(end.worker)) {
    failed_ = true;
    auto why = end.last_line.empty() ? fmt::format("{} {}", end.name, end.why) : end.last_line;
    outcome_ = run::LoaderFailed{fmt::format("--loader {}: {}", loader_, why)};
    return outcome_;
  }
  if (preparation_) preparation_->forget(end.worker);
  return std::nullopt;
}

}  // namespace taas::node
