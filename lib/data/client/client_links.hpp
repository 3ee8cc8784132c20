#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/client/client_link.hpp"

namespace taas::data {

/// A client's links by worker. All calls but stop() come under the client's mutex.
class ClientLinks {
 public:
  [[nodiscard]] std::size_t size() const { return links_.size(); }
  [[nodiscard]] ClientLink& at(WorkerIndex worker) const { return *links_[static_cast<std::size_t>(worker)]; }
  /// This link is the worker's from now on, and is started. Returns the one before; null: it is the next new one.
  std::unique_ptr<ClientLink> set(WorkerIndex worker, std::unique_ptr<ClientLink> link);

  [[nodiscard]] int count_up() const;
  /// Why no worker will ever make a batch; empty: one may.
  [[nodiscard]] std::string hopeless() const;

  /// Without the mutex, when the list does not change any more.
  void stop();

 private:
  std::vector<std::unique_ptr<ClientLink>> links_;
};

}  // namespace taas::data
