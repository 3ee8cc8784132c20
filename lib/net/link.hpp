#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "net/frames.hpp"
#include "net/secret.hpp"

namespace taas::net {

/// One authenticated connection that carries frames (net/frames.hpp): TLS 1.3 with the run's secret as external
/// pre-shared key and a fresh (EC)DHE exchange, so that neither a replay nor a key that leaks later opens anything.
/// Single-threaded; callbacks run in the event loop, never inside a call of the link's own functions. Destroying the
/// link, from a callback too, ends the callbacks and, unless close() was called before, the connection.
class Link {
 public:
  struct Callbacks {
    std::function<void(std::string_view frame)> on_frame;  ///< the frame is good until it returns
    /// Once, last. `by_peer`: this machine was told that the other end is closed, as it is when its process was killed.
    std::function<void(const std::string& reason, bool by_peer)> on_closed;
  };
  virtual ~Link() = default;
  /// All are called if set. Nothing is read before the first call.
  virtual void set_callbacks(Callbacks callbacks) = 0;
  /// A frame over kMostFrameBytes is our own mistake, and closes the link.
  virtual void send(std::string frame) = 0;
  /// What was sent before goes out (for at most two seconds), then the link closes; frames that come meanwhile are
  /// lost.
  virtual void close() = 0;
  [[nodiscard]] virtual std::string peer_address() const = 0;   ///< numeric
  [[nodiscard]] virtual std::string local_address() const = 0;  ///< numeric
};

struct ConnectOptions {
  std::vector<std::string> addresses;  ///< numeric or names; tried at the same time, the first that proves itself wins
  std::uint16_t port = 0;
  Secret secret;
  std::chrono::milliseconds patience{5000};  ///< for all of it; an address that is asked for may come later
  /// Told what one of the addresses stands for, before that is tried. False: nothing is tried any more, and nobody is
  /// called back.
  std::function<bool(const std::vector<boost::asio::ip::address>&)> on_found{};
};

/// An attempt that is under way. Destroying it, from its own callback too, cancels it.
class Connecting {
 public:
  virtual ~Connecting() = default;
};

/// An error with ECONNREFUSED: every address was reached, and nobody listens there. One with EADDRNOTAVAIL: all are
/// names, and no address is known for any of them yet.
/// Tries once over all addresses; calls back once with a link, or why none could be made ("10.0.0.1 port 29400:
/// connection refused; …"). A listener may see a further link of an attempt that lost by a hair: it closes at once.
std::unique_ptr<Connecting> connect(boost::asio::io_context& io, ConnectOptions options,
                                    std::function<void(Result<std::unique_ptr<Link>>)> on_done);

}  // namespace taas::net
