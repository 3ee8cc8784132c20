#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "store/database.hpp"

namespace boost::asio {
class io_context;
}

namespace taas::store {

struct ServerOptions {
  /// Numeric ones of this machine, on the same port; for IPv4 loopback ::1 is served too.
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::uint16_t port = 0;                   ///< 0: the kernel chooses
  int backlog = 4096;                       ///< all ranks connect at the same moment
  std::size_t most_bytes = kMostBytesHeld;  ///< of all clients: a request for which there is no room closes its client
  int most_clients = 128 * 1024;            ///< at a time
  std::chrono::milliseconds patience{60000};        ///< with a client until its greeting is whole
  std::chrono::milliseconds crowded_patience{100};  ///< until its first request, while there is no room for more
  /// After so much work for clients all else that the event loop has to do comes first.
  std::chrono::milliseconds longest_turn{10};
};

/// What the launcher learns by watching; called on the server's thread. A callback may begin_generation(), but must not
/// destroy the server.
struct Observer {
  std::function<void(Rank)> on_joined;             ///< its process group is coming up; once a generation for each rank
  std::function<void(const Error&)> on_refused{};  ///< a client left the protocol, and its connection was closed
  std::function<void()> on_reached{};              ///< the first request of a generation, whichever rank's it is
};

/// Serves torch's TCPStore protocol, to clients of every torch version that greets with VALIDATE (2.1 and later).
/// Single-threaded: every call is made on the thread that runs the io_context, which must outlive the server.
/// Its sockets are close-on-exec.
class Server {
 public:
  /// Binds and listens; from then on until destruction the port is held. Out of file descriptors, it lets clients wait
  /// in the backlog until there are some again: raising RLIMIT_NOFILE is the caller's, since children inherit it. At
  /// most_clients, those that have asked for nothing in time make room, the oldest first, and where all have, others
  /// wait. Who does not greet in time is closed in any case.
  static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& io, const ServerOptions& options,
                                                Observer observer);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;

  /// Forgets every key and closes every connection, those in the backlog too; the port stays bound. From then on only
  /// who comes to `address` is served, one of those listened on; empty: who comes to any of them.
  void begin_generation(const std::string& address = {});
  /// As begin_generation(), but nobody is served until the next one: who connects is closed at once.
  void rest();

  int connections() const;

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace taas::store
