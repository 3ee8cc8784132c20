#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::net {

/// Ports for servers that other processes of this machine will open, each kept free for its server from now on: bound,
/// never listened on, with SO_REUSEADDR. The kernel gives none of them away, while a server that sets SO_REUSEADDR, as
/// servers do, may bind its own, and again after a restart. Against somebody who is after a port it is no protection:
/// with SO_REUSEADDR any user may bind it, and SO_REUSEPORT, which would keep other users out, needs servers that set
/// it.
class HeldPorts {
 public:
  /// `address` is a numeric one of this machine. None for a count of 0.
  static Result<HeldPorts> hold(boost::asio::io_context& io, const std::string& address, int count);

  [[nodiscard]] const std::vector<std::uint16_t>& numbers() const { return numbers_; }

 private:
  std::vector<boost::asio::ip::tcp::socket> sockets_;
  std::vector<std::uint16_t> numbers_;
};

}  // namespace taas::net
