#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "store/request.hpp"

namespace taas::store {

/// One connected client of the store; never used twice.
using ClientId = Id<struct StoreClientTag>;

/// Bytes to send to a client.
struct Reply {
  ClientId client;
  std::string bytes;
};

/// The keys, queues and waiting clients of one generation. No I/O: requests in, replies out.
class Database {
 public:
  /// The replies in the order to send them: first those of waiting clients that the request releases, then the
  /// client's own. An error means that the request makes no sense: close that client's connection, and drop() it.
  Result<std::vector<Reply>> apply(ClientId client, Request&& request);

  /// The client is gone: forgets what it waits for.
  void drop(ClientId client);

 private:
  /// Oldest first: a ticket is younger than every one given before.
  using Waiters = std::map<std::uint64_t, ClientId>;
  struct Waiting {
    std::uint64_t ticket = 0;
    std::vector<std::string> keys;  ///< those missing when the wait began
    std::size_t missing = 0;        ///< how many of them have not come since
  };
  struct Handler;

  bool has(const std::string& key) const;
  void put(const std::string& key, std::string value, std::vector<Reply>& replies);
  Result<std::int64_t> increase(const std::string& key, std::int64_t amount);
  void wait(ClientId client, std::vector<std::string> missing);
  void wake_all(const std::string& key, std::vector<Reply>& replies);
  void wake_one(const std::string& key, std::vector<Reply>& replies);
  void key_came(ClientId client, std::vector<Reply>& replies);

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;  ///< never an empty one
  std::unordered_map<std::string, Waiters> waiters_;                 ///< by missing key; never an empty one
  std::unordered_map<int, Waiting> waiting_;  ///< by client; a client waits for one thing at a time
  std::uint64_t next_ticket_ = 0;
};

}  // namespace taas::store
