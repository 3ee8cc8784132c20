#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "catch.hpp"
#include "store/running_server.hpp"
#include "store/wire.hpp"

/// A blocking client with a deadline on every receive.
class Client {
 public:
  static constexpr int kDeadlineSeconds = 60;

  explicit Client(std::uint16_t port, std::string_view first_bytes = wire::greeting()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = taas::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(socket_);
    const timeval deadline{kDeadlineSeconds, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    REQUIRE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    send(first_bytes);
  }

  /// A closed connection is for the next receive to find.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return;
      REQUIRE(sent > 0);
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// Exactly this many bytes; fewer when the connection ends before.
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t received = 0;
    while (received < size) {
      const auto count = ::recv(socket_.get(), bytes.data() + received, size - received, 0);
      if (count < 0) REQUIRE(errno == ECONNRESET);
      if (count <= 0) break;
      received += static_cast<std::size_t>(count);
    }
    bytes.resize(received);
    return bytes;
  }

  std::string ask(std::string_view request, std::size_t answer_size) {
    send(request);
    return receive(answer_size);
  }

  /// The server has answered everything asked so far when this holds.
  bool answers() { return ask(wire::ping(0x55AA55AA), 4) == wire::number(0x55AA55AA, 4); }
  /// Of what has been sent, so many bytes are here and not received yet; `most` is enough to know.
  std::size_t waiting_bytes(std::size_t most) const {
    std::string bytes(most, '\0');
    const auto count = ::recv(socket_.get(), bytes.data(), most, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  bool is_closed() { return receive(1).empty(); }
  void hang_up() { socket_.reset(); }

 private:
  taas::Fd socket_;
};
