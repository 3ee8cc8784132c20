#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "store/reply.hpp"
#include "store/request.hpp"
#include "store/waiting_clients.hpp"

namespace taas::store {

/// Of all clients together, unless a server is told otherwise. A larger machine is no reason for more: torch keeps
/// addresses and small objects in a store.
inline constexpr std::size_t kMostBytesHeld = std::size_t{1} << 30;

/// The keys, queues and waiting clients of one generation. No I/O: requests in, replies out.
class Database {
 public:
  explicit Database(std::shared_ptr<Budget> budget = std::make_shared<Budget>(kMostBytesHeld))
      : budget_(std::move(budget)), waiting_(budget_) {}

  /// The replies in the order to send them: first those of waiting clients that the request releases, then the
  /// client's own. An error means that the request makes no sense, or asks to hold more than there is room for: close
  /// that client's connection, and drop() it.
  Result<std::vector<Reply>> apply(ClientId client, Request&& request);

  /// The client is gone: forgets what it waits for.
  void drop(ClientId client) { waiting_.drop(client); }

 private:
  using Stored = std::shared_ptr<Value>;
  struct Handler;

  bool has(const std::string& key) const;
  Result<Stored> make_value(const std::string& key, std::string bytes);
  Result<> put(const std::string& key, std::string bytes, std::vector<Reply>& replies);
  Result<> append(const std::string& key, const std::string& more);
  Result<std::int64_t> increase(const std::string& key, std::int64_t amount);
  Result<> wait(ClientId client, std::vector<std::string> missing);
  void wake_all(const std::string& key, std::vector<Reply>& replies);
  void wake_one(const std::string& key, std::vector<Reply>& replies);

  std::shared_ptr<Budget> budget_;
  std::unordered_map<std::string, Stored> values_;
  std::unordered_map<std::string, std::deque<Stored>> queues_;  ///< never an empty one
  WaitingClients waiting_;
};

}  // namespace taas::store
