#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "node/data/data_workers.hpp"
#include "run/agent/loader_preparation.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

/// Whether this node's data workers have prepared the program's --loader, by what they report and how they end. Pure.
class LoaderWatch {
 public:
  /// `loader` as the user named it; empty: nothing is prepared.
  explicit LoaderWatch(std::string loader) : loader_(std::move(loader)) {}

  /// `buffer_bytes` is what these workers may hold together.
  void begin(int workers, std::int64_t buffer_bytes);
  /// False: told too recently to be news for a user. A worker may tell of each batch.
  [[nodiscard]] bool update(const run::DataPrepared& told);
  /// LoaderPrepared, once.
  [[nodiscard]] std::optional<run::AgentMessage> check();
  /// LoaderFailed, once: a worker that ends by itself before it has prepared anything could not load the loader, and
  /// neither will its successor.
  [[nodiscard]] std::optional<run::AgentMessage> ended(const DataWorkerEnd& end);

  [[nodiscard]] bool failed() const { return failed_; }
  /// What was told in the end, for a coordinator that was lost.
  [[nodiscard]] const std::optional<run::AgentMessage>& outcome() const { return outcome_; }

 private:
  std::string loader_;
  std::optional<run::LoaderPreparation> preparation_;  // until it is complete
  bool failed_ = false;
  std::map<int, Instant> told_;  // by worker
  std::optional<run::AgentMessage> outcome_;
};

}  // namespace taas::node
