#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas::net {

/// The run's shared secret: what TLS 1.3 authenticates both ends with (external pre-shared key, RFC 8446 section 2.2).
struct Secret {
  std::string run_id;  ///< the key's identity
  std::string key;     ///< 32 random bytes, raw
};

/// 64 hexadecimal digits <-> Secret::key; an error names what is wrong without repeating the text.
Result<std::string> parse_key(std::string_view hexadecimal);
std::string print_key(std::string_view key);
/// A key out of what a person chose (TAAS_TOKEN, --token-file): HKDF-SHA256 of it with the run's id.
Result<std::string> derive_key(std::string_view token, std::string_view run_id);

/// One authenticated connection that carries frames (length in 4 bytes, big-endian; then that many bytes).
/// Single-threaded; callbacks run in the event loop, never inside a call of the link's own functions. Destroying the
/// link, from a callback too, closes it silently.
class Link {
 public:
  struct Callbacks {
    std::function<void(std::string_view frame)> on_frame;
    std::function<void(const std::string& reason, bool by_peer)> on_closed;  ///< once, last
    std::function<void(bool crowded)> on_crowded{};  ///< more than 1 MiB waits to be sent; then again below 256 KiB
  };
  virtual ~Link() = default;
  virtual void set_callbacks(Callbacks callbacks) = 0;
  virtual void send(std::string frame) = 0;
  /// What was sent before goes out (for at most two seconds), then the link closes.
  virtual void close() = 0;
  [[nodiscard]] virtual std::string peer_address() const = 0;   ///< numeric
  [[nodiscard]] virtual std::string local_address() const = 0;  ///< numeric
};

inline constexpr std::size_t kMostFrameBytes = 16u << 20;

struct ListenOptions {
  std::vector<std::string> addresses;  ///< numeric; each is bound, to the same port
  std::uint16_t port = 0;              ///< 0: the kernel chooses
  Secret secret;
};

/// Accepts agents. A peer that does not prove the secret within five seconds, or sends anything else, is closed and
/// forgotten; at most 64 handshakes are under way at a time for strangers.
class Listener {
 public:
  static Result<std::unique_ptr<Listener>> listen(boost::asio::io_context& io, ListenOptions options,
                                                  std::function<void(std::unique_ptr<Link>)> on_link);
  virtual ~Listener() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

struct ConnectOptions {
  std::vector<std::string> addresses;  ///< numeric or names; tried at the same time, the first that proves itself wins
  std::uint16_t port = 0;
  Secret secret;
};

/// Tries once over all addresses; calls back once with a link or why none could be made. Destroying the returned
/// handle cancels.
class Connecting {
 public:
  virtual ~Connecting() = default;
};
std::unique_ptr<Connecting> connect(boost::asio::io_context& io, ConnectOptions options,
                                    std::function<void(Result<std::unique_ptr<Link>>)> on_done);

/// This machine's addresses that others may reach: interfaces that are up, without loopback and link-local ones, IPv4
/// before IPv6. With `interface`, only that one's (an error names those there are).
Result<std::vector<std::string>> candidate_addresses(const std::string& interface = {});
/// The interface that has this address; empty: none.
std::string interface_of(std::string_view address);

/// Which of these accept a TCP connection, in their order; each is given `patience`.
std::unique_ptr<Connecting> probe(boost::asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port,
                                  std::chrono::milliseconds patience,
                                  std::function<void(std::vector<std::string> reached, std::string interface)> on_done);

}  // namespace taas::net
