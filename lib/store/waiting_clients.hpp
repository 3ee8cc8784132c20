#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/reply.hpp"

namespace taas::store {

/// Which clients wait for which keys to come. A client waits for one thing at a time: for all of some keys.
class WaitingClients {
 public:
  explicit WaitingClients(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}

  /// `missing` is not empty. A wait that the client began before is forgotten. False: the budget has no room for it.
  [[nodiscard]] bool begin(ClientId client, std::vector<std::string> missing);
  void drop(ClientId client);

  /// Returns whose wait is over, the oldest first. A key counts from when it came, even if it is deleted again before
  /// the others come.
  [[nodiscard]] std::vector<ClientId> key_came(const std::string& key);
  /// It counts for one client only, the one that has waited longest; returns it if its wait is over.
  [[nodiscard]] std::optional<ClientId> key_came_for_one(const std::string& key);

 private:
  /// Oldest first: a ticket is younger than every one given before.
  using Waiters = std::map<std::uint64_t, ClientId>;
  struct Waiting {
    std::uint64_t ticket = 0;
    std::vector<std::string> keys;  ///< those missing when the wait began
    std::size_t missing = 0;        ///< how many of them have not come since
    Share share;
  };

  [[nodiscard]] bool is_over(ClientId client);

  std::shared_ptr<Budget> budget_;
  std::unordered_map<std::string, Waiters> waiters_;  // by missing key; never an empty one
  std::unordered_map<int, Waiting> waiting_;          // by client
  std::uint64_t next_ticket_ = 0;
};

}  // namespace taas::store
