#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "net/link.hpp"

namespace taas::net {

/// This machine's addresses that others may reach: interfaces that are up, without loopback and link-local ones, IPv4
/// before IPv6. With `interface`, only that one's, loopback included; an error names those there are.
Result<std::vector<std::string>> candidate_addresses(const std::string& interface = {});

/// The interface that has this address; empty: none.
std::string interface_of(std::string_view address);

/// By which processes of this machine reach each other: "127.0.0.1", or "::1" where only that is there.
std::string loopback_address();

/// Which of these numeric addresses accept a TCP connection within `patience`, in their order, and the interface over
/// which the first of them was reached (empty: none was).
std::unique_ptr<Connecting> probe(boost::asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port,
                                  std::chrono::milliseconds patience,
                                  std::function<void(std::vector<std::string> reached, std::string interface)> on_done);

}  // namespace taas::net
