#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "data/transport/transport.hpp"
#include "data/transport/wakeup.hpp"
#include "net/tls/tls.hpp"

namespace taas::data {

/// The TLS handshake over a connected socket, and then what is read and written through it.
Result<std::unique_ptr<Transport>> make_tls_transport(Fd socket, std::shared_ptr<net::Tls> tls, const Wakeup& wakeup,
                                                      Instant deadline);

}  // namespace taas::data
