#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// Both ends of a connection between two processes of this machine that keeps messages apart; close-on-exec.
Result<std::pair<Fd, Fd>> make_message_sockets();

/// Sends one message, and duplicates of open descriptors with it. A peer that does not read for so long is an error.
Result<> send_message(const Fd& socket, std::string_view message, std::span<const int> descriptors,
                      std::chrono::milliseconds patience);

/// The next message; empty when the peer has closed. Silence for so long is an error.
Result<std::string> receive_message(const Fd& socket, std::chrono::milliseconds patience);

}  // namespace taas
