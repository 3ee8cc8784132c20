#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "store/database.hpp"
#include "store/parser.hpp"

namespace taas::store {

class Connection;

/// What a connection needs of its server.
class ConnectionOwner {
 public:
  /// Shared by all connections: what is read into it is used before the next connection reads.
  virtual std::span<char> read_buffer() = 0;
  virtual void on_request(Connection& connection, Request&& request) = 0;
  /// All requests that came together are handled: send what they made.
  virtual void flush_replies() = 0;
  /// The connection is closed. `reason` is null when it was the client who closed it.
  virtual void on_closed(Connection& connection, const Error* reason) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// One client's socket: reads requests as they come, and sends replies without ever blocking. A client that does not
/// read its replies is not read from either until it does, so that it costs bounded memory and no one else's time.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ClientId id, ConnectionOwner& owner);

  ClientId id() const { return id_; }
  void start() { await_readable(); }

  /// Takes a reply for the next flush(); true when it is the first since the last one.
  bool queue(std::string_view bytes);
  void flush();

  /// Closes the socket and tells the owner.
  void close(const Error* reason);
  /// Closes the socket without telling the owner, which calls this.
  void abandon();

 private:
  void await_readable();
  void await_writable();
  void on_readable();
  void on_writable();
  void handle(std::string_view bytes);
  void handle_some(std::string_view& bytes);
  bool may_handle() const;

  boost::asio::ip::tcp::socket socket_;
  ClientId id_;
  ConnectionOwner* owner_;  ///< null once closed
  Parser parser_;
  std::string unread_;  ///< bytes whose requests wait until the client reads
  std::string unsent_;
  std::size_t sent_ = 0;  ///< of unsent_, from its front
  bool awaits_writable_ = false;
};

}  // namespace taas::store
