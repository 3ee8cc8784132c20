#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <string>

/// Someone in the middle: passes one connection on to a port, sees and may change what goes by.
class Relay {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  Relay(boost::asio::io_context& io, std::uint16_t target)
      : acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}), client_{Socket(io)}, server_{Socket(io)} {
    acceptor_.async_accept(client_.socket, [this, target](const auto& status) {
      if (status) return;
      server_.socket.connect({boost::asio::ip::address_v4::loopback(), target});
      pass(client_, server_);
      pass(server_, client_);
    });
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  /// All that the client has sent.
  [[nodiscard]] const std::string& recorded() const { return client_.heard; }
  /// Changes what the client sends from now on.
  void tamper(std::function<void(std::string&)> change) { tamper_ = std::move(change); }
  /// Both connections end as they do when a machine has forgotten them.
  void reset() {
    for (auto* side : {&client_, &server_}) {
      side->socket.set_option(boost::asio::socket_base::linger(true, 0));
      side->socket.close();
    }
  }

 private:
  struct Side {
    Socket socket;
    std::array<char, 4096> chunk{};
    std::string heard{};
  };

  void pass(Side& from, Side& to) {
    from.socket.async_read_some(boost::asio::buffer(from.chunk), [&](const auto& status, std::size_t size) {
      if (status) return;
      std::string bytes(from.chunk.data(), size);
      from.heard += bytes;
      if (tamper_ && &from == &client_) tamper_(bytes);
      boost::system::error_code ignored;
      boost::asio::write(to.socket, boost::asio::buffer(bytes), ignored);
      pass(from, to);
    });
  }

  boost::asio::ip::tcp::acceptor acceptor_;
  Side client_;
  Side server_;
  std::function<void(std::string&)> tamper_;
};
