#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "data/client/client.hpp"

namespace taas::data {

struct ServerOptions {
  std::string run_id;
  std::string key;  ///< 32 bytes
  Encryption encryption = Encryption::kTls;
  Fd tcp_listener;   ///< bound and listening; none: no TCP
  Fd unix_listener;  ///< the same for a Unix stream socket
};

/// What lies between two buffers is zero.
inline constexpr std::size_t kBufferAlignment = 64;

/// One task of one client, to be answered exactly once by Server::put, raise or give_back.
struct Job {
  std::uint64_t client = 0;  ///< which of the links
  StreamId stream = 0;
  std::uint64_t number = 0;
  Attempt attempt = 0;
  std::string digest;  ///< of the definition, which is here
  std::string payload;
  bool has_ended_a_worker = false;  ///< one that had it was lost
};

/// What a client sent for its tasks: Definition.
struct ReceivedDefinition {
  std::string bytes;
  SealedMemory memory;  ///< no descriptor: none came along
};

/// A data worker's end: takes tasks from all clients, lowest number first, and sends what was made of them. Threads of
/// its own for the links; making batches is the caller's, in one thread.
class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The next job; nothing when `patience` is over first. A job whose definition is not here yet is asked for and comes
  /// when it is.
  std::optional<Job> take(Duration patience);
  /// Nothing when it was never here, or is loaded.
  [[nodiscard]] std::shared_ptr<const ReceivedDefinition> definition(const std::string& digest) const;
  /// The caller has made of the definition what it needs for jobs: its bytes, which may be a whole dataset, are let go.
  void loaded(const std::string& digest);
  /// The caller has no more what it made of the definition, or could not make it: for the next job a client is asked
  /// for it again.
  void unloaded(const std::string& digest);

  /// Sends `buffers`. Each begins at the next multiple of kBufferAlignment in the client's payload. `keep` owns them
  /// until they are out: sent, or copied into the client's memory on the same machine. It is let go in a thread of the
  /// server.
  void put(const Job& job, const std::vector<std::span<const std::byte>>& buffers, std::shared_ptr<void> keep);
  void raise(const Job& job, const Raised& what);
  /// Somebody else may try.
  void give_back(const Job& job, std::string why);

  /// True when nobody wants the job any more: the caller may stop working on it.
  [[nodiscard]] bool is_withdrawn(const Job& job) const;
  /// Lines for people since the last call: who was refused, and why.
  std::vector<std::string> take_remarks();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace taas::data
