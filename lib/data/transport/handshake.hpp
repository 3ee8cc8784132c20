#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "data/transport/transport.hpp"
#include "data/transport/wakeup.hpp"
#include "net/secret.hpp"
#include "net/tls/tls.hpp"

namespace taas::data {

enum class Encryption {
  kTls,    ///< TLS 1.3 with the run's secret as pre-shared key
  kPlain,  ///< a trusted fabric: both ends prove the secret, then bytes go as they are, with a checksum
};
enum class AddressFamily { kTcp, kUnix };

/// Lets both ends of a new connection prove the run's secret to each other before a frame is read. On Unix sockets
/// nothing is encrypted, and the other end has to be of the same user.
class Handshake {
 public:
  static Result<Handshake> make(net::Role role, net::Secret secret, Encryption encryption);

  /// Until it is done, has failed, was woken, or its time is up. The error says in one line why the other end is
  /// refused.
  Result<std::unique_ptr<Transport>> run(Fd socket, AddressFamily family, const Wakeup& wakeup,
                                         Duration patience) const;

 private:
  Handshake(net::Role role, net::Secret secret, std::shared_ptr<net::Tls> tls)
      : role_(role), secret_(std::move(secret)), tls_(std::move(tls)) {}

  net::Role role_;
  net::Secret secret_;
  std::shared_ptr<net::Tls> tls_;  ///< none: plain
};

}  // namespace taas::data
