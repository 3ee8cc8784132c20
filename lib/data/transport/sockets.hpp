#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "data/transport/wakeup.hpp"

namespace taas::data {

/// Sockets that never block, close-on-exec and tuned for batches.
Result<Fd> connect_tcp(const std::string& numeric_address, std::uint16_t port, const Wakeup& wakeup, Duration patience);
Result<Fd> connect_unix(const std::string& path);

/// What has just come in at a listener; none: nothing has.
Fd accept_from(const Fd& listener);
void tune_tcp(const Fd& socket);

/// Whether the other end of a Unix socket is a process of this user.
bool is_same_user(const Fd& socket);

/// For tests and benchmarks: a listener on 127.0.0.1, port 0 meaning any.
Result<Fd> listen_tcp(const std::string& numeric_address, std::uint16_t port);
Result<std::uint16_t> port_of(const Fd& listener);
Result<Fd> listen_unix(const std::string& path);

}  // namespace taas::data
