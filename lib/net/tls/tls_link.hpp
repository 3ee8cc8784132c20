#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "net/frames.hpp"
#include "net/link.hpp"
#include "net/tls/tls.hpp"

// Of this folder's own files: it brings in OpenSSL.
namespace taas::net {

/// One TCP connection with TLS on it, from its first byte on. What is under way in the event loop keeps it alive until
/// it is closed.
class TlsLink : public std::enable_shared_from_this<TlsLink> {
 public:
  TlsLink(boost::asio::ip::tcp::socket socket, std::shared_ptr<Tls> tls);

  /// Calls back once, with an empty text when both ends have proved the secret, else with why not; never after
  /// abandon(). Only then the other functions make sense. No deadline: the owner has one.
  void prove(std::function<void(const std::string& failure)> on_done);

  void set_callbacks(Link::Callbacks callbacks);
  void send(std::string_view frame);
  void close();
  /// The owner is gone: no callback from now on. A link that is closing still sends what it has.
  void release();
  /// Closes at once and silently.
  void abandon();

  [[nodiscard]] const std::string& peer_address() const { return peer_address_; }
  [[nodiscard]] const std::string& local_address() const { return local_address_; }

 private:
  enum class Phase { kProving, kOpen, kClosing, kClosed };
  using Status = boost::system::error_code;

  void on_proved(const Status& status, const std::function<void(const std::string&)>& on_done);
  void read();
  void on_read(const Status& status, std::size_t size);
  void deliver(std::string_view bytes);
  void write();
  void on_written(const Status& status, std::size_t size);
  void finish_within(std::chrono::milliseconds patience, std::string reason);
  void finish(const std::string& reason, bool by_peer);

  std::shared_ptr<Tls> tls_;  ///< the stream's context
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
  boost::asio::steady_timer patience_;
  Phase phase_ = Phase::kProving;
  std::string peer_address_;
  std::string local_address_;
  std::shared_ptr<const Link::Callbacks> callbacks_;  ///< shared with the call under way, which may end the link

  bool reading_ = false;
  std::array<char, 16 * 1024> chunk_{};
  FrameReader frames_;

  bool writing_ = false;  ///< stays set after an error: nothing more is written then
  std::string waiting_;   ///< frames that are not yet going out
  std::string going_;
  std::size_t gone_ = 0;  ///< of going_, from its front
};

/// The owner's end.
std::unique_ptr<Link> make_link(std::shared_ptr<TlsLink> link);

}  // namespace taas::net
