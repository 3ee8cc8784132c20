#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "net/tls/tls_link.hpp"

// Of this folder's own files: it brings in OpenSSL.
namespace taas::net {

/// The way to one endpoint: connected, then proved. No deadline: the owner has one.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  /// With a link, or null and why not; once, in the event loop, and never after cancel().
  using OnEnd = std::function<void(std::shared_ptr<TlsLink> link, const std::string& failure)>;

  Attempt(boost::asio::io_context& io, std::shared_ptr<Tls> tls, OnEnd on_end);
  void start(const boost::asio::ip::tcp::endpoint& endpoint);
  void cancel();

 private:
  void on_connected(const boost::system::error_code& status);
  void end(std::shared_ptr<TlsLink> link, const std::string& failure);

  std::shared_ptr<Tls> tls_;
  OnEnd on_end_;  ///< null once ended
  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<TlsLink> link_;
};

}  // namespace taas::net
