#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "store/parser.hpp"
#include "store/reply.hpp"

namespace taas::store {

class Connection;

/// What a connection needs of its server.
class ConnectionOwner {
 public:
  /// Shared by all connections: what is read into it is used before the next connection reads.
  virtual std::span<char> read_buffer() = 0;
  virtual void on_request(Connection& connection, Request&& request) = 0;
  /// False when clients have had enough of this turn of the event loop: the next request waits for the next turn.
  virtual bool has_time() = 0;
  /// All requests that came together are handled: send what they made.
  virtual void flush_replies() = 0;
  /// The connection is closed. `reason` is null when it was the client who closed it.
  virtual void on_closed(Connection& connection, const Error* reason) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// One client's socket: reads requests as they come, and sends replies without ever blocking. A client that does not
/// read its replies is not read from either until it does, one that holds much of a budget that is used up is
/// closed, and what takes long goes on in another turn of the event loop, so that a client costs bounded memory and
/// no one else's time.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ClientId id, ConnectionOwner& owner, std::shared_ptr<Budget> budget);

  ClientId id() const { return id_; }
  void start() { await_readable(); }
  [[nodiscard]] bool has_greeted() const { return parser_.has_greeted(); }

  /// Takes a reply for the next flush(); true when it is the first since the last one.
  bool queue(std::vector<Piece> pieces);
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
  void go_on_later();
  void go_on();
  void handle(std::string_view bytes);
  void handle_some(std::string_view& bytes);
  bool may_handle() const;
  boost::system::error_code write_some(std::size_t& written);
  void drop_sent(std::size_t bytes);
  void hold();
  void count();

  boost::asio::ip::tcp::socket socket_;
  ClientId id_;
  ConnectionOwner* owner_;  ///< null once closed
  Parser parser_;
  std::string unread_;  ///< bytes whose requests wait until the client reads, or for the next turn
  std::deque<Piece> unsent_;
  std::size_t unsent_bytes_ = 0;
  std::size_t sent_ = 0;         ///< of unsent_'s first piece
  std::size_t reply_bytes_ = 0;  ///< of unsent_, without shared values
  Share share_;
  bool awaits_writable_ = false;
  bool goes_on_later_ = false;
};

}  // namespace taas::store
