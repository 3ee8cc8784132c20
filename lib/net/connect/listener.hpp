#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "net/link.hpp"
#include "net/secret.hpp"

namespace taas::net {

struct ListenOptions {
  std::vector<std::string> addresses;  ///< numeric; each is bound, to the same port
  std::uint16_t port = 0;              ///< 0: the kernel chooses
  Secret secret;
  std::chrono::milliseconds patience{5000};         ///< for a stranger to prove the secret
  std::chrono::milliseconds crowded_patience{500};  ///< the same while there is no room for more
  int most_strangers = 64;  ///< at a time, or a 16th of the descriptors; others wait in the kernel's queue
};

/// Accepts agents. A peer that does not prove the secret in time, or sends anything else, is closed and forgotten.
class Listener {
 public:
  /// `on_store_client`, if there is one, is given connections that begin as a client of torch's TCPStore does, with all
  /// that they said unread.
  static Result<std::unique_ptr<Listener>> listen(
      boost::asio::io_context& io, ListenOptions options, std::function<void(std::unique_ptr<Link>)> on_link,
      std::function<void(boost::asio::ip::tcp::socket)> on_store_client = nullptr);
  virtual ~Listener() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace taas::net
