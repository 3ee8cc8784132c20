#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "data/transport/transport.hpp"
#include "data/transport/wakeup.hpp"
#include "net/secret.hpp"
#include "net/tls/tls.hpp"

namespace taas::data {

/// Mutual proof of the secret over a connection that is not encrypted: each end answers the other's random challenge
/// with HMAC-SHA256 over both. The end that was called proves first, and an end that has not proved itself gets no
/// answer.
Result<> prove_to_each_other(Transport& transport, net::Role role, const net::Secret& secret, const Wakeup& wakeup,
                             Instant deadline);

}  // namespace taas::data
