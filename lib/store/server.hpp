#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/ids.hpp"

namespace boost::asio {
class io_context;
}

namespace taas::store {

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< a numeric address of this machine; for IPv4 loopback ::1 is served too
  std::uint16_t port = 0;             ///< 0: the kernel chooses
  int backlog = 4096;                 ///< all ranks connect at the same moment
};

/// What the launcher learns by watching; called on the server's thread. A callback may begin_generation(), but must not
/// destroy the server.
struct Observer {
  std::function<void(Rank)> on_joined;             ///< its process group is coming up; once a generation for each rank
  std::function<void(const Error&)> on_refused{};  ///< a client left the protocol, and its connection was closed
};

/// Serves torch's TCPStore protocol, to clients of every torch version that greets with VALIDATE (2.1 and later).
/// Single-threaded: every call is made on the thread that runs the io_context, which must outlive the server.
/// Its sockets are close-on-exec.
class Server {
 public:
  /// Binds and listens; from then on until destruction the port is held. Out of file descriptors, it lets clients wait
  /// in the backlog until there are some again: raising RLIMIT_NOFILE is the caller's, since children inherit it.
  static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& io, const ServerOptions& options,
                                                Observer observer);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;

  /// Forgets every key and closes every connection, those in the backlog too; the port stays bound.
  void begin_generation();

  int connections() const;

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace taas::store
