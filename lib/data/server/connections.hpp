#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/server/server_link.hpp"

namespace taas::data {

/// A server's links, from the first knock to the end of their threads. Accepts on a thread of its own; how many clients
/// may be there whose secret is not proved is bounded.
class Connections {
 public:
  Connections(Server::State& server, std::mutex& mutex, const ServerOptions& options);

  // Without the server's mutex.
  /// An error where the system starts no thread; it may be called again then.
  Result<> start();
  /// Ends all links and waits for their threads.
  void stop();
  /// The link's client has proved the secret.
  void admit(std::uint64_t link);

  // With the server's mutex.
  /// nullptr: it has ended.
  [[nodiscard]] ServerLink* find(std::uint64_t link) const;
  [[nodiscard]] ServerLink& at(std::uint64_t link) const { return *links_.at(link); }
  /// The link's thread is at its end.
  void end(std::uint64_t link);

 private:
  void accept_all();
  void accept_one(const Fd& listener, AddressFamily family);
  /// For one more stranger; otherwise how long the oldest one may stay.
  std::optional<Duration> make_room();
  void join_ended();

  Server::State& server_;
  std::mutex& mutex_;
  const ServerOptions& options_;
  const std::size_t most_strangers_;
  std::map<std::uint64_t, std::unique_ptr<ServerLink>> links_;
  std::map<std::uint64_t, Instant> strangers_;  // whose secret is not proved, the oldest first, and their begin
  std::vector<std::uint64_t> ended_;
  std::uint64_t next_link_ = 1;
  Wakeup wakeup_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace taas::data
