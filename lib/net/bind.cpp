#include "net/bind.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/v6_only.hpp>
#include <optional>

#include "net/sockets.hpp"

namespace taas::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Status = boost::system::error_code;

/// How often another port is tried when the kernel's choice for the first address is taken on a further one.
constexpr int kPortAttempts = 16;

Status open(Acceptor& acceptor, const tcp::endpoint& endpoint) {
  Status status;
  if (acceptor.open(endpoint.protocol(), status)) return status;
  set_close_on_exec(acceptor.native_handle());
  // A port whose last owner's connections linger is free all the same; one that is listened on is not.
  if (acceptor.set_option(Acceptor::reuse_address(true), status)) return status;
  if (endpoint.address().is_v6() && acceptor.set_option(asio::ip::v6_only(true), status)) return status;
  if (acceptor.bind(endpoint, status)) return status;
  acceptor.listen(Acceptor::max_listen_connections, status);
  return status;
}

Error cannot_listen(const tcp::endpoint& endpoint, const Status& status) {
  const auto where = fmt::format("{} port {}", endpoint.address().to_string(), endpoint.port());
  if (status == asio::error::address_in_use) {
    return unavailable_error(fmt::format("{} is already in use: choose another port, or none for a free one", where));
  }
  return system_error(fmt::format("cannot listen on {} for other nodes", where), status.value());
}

/// nullopt: the kernel's port is taken on another address, so another has to be tried.
Result<std::optional<std::vector<Acceptor>>> try_bind(asio::io_context& io, const std::vector<asio::ip::address>& all,
                                                      std::uint16_t wanted) {
  std::vector<Acceptor> acceptors;
  auto port = wanted;
  for (const auto& address : all) {
    const tcp::endpoint endpoint(address, port);
    acceptors.emplace_back(io);
    const auto status = open(acceptors.back(), endpoint);
    if (status == asio::error::address_in_use && wanted != port) return std::nullopt;
    if (status) return cannot_listen(endpoint, status);
    Status ignored;
    port = acceptors.front().local_endpoint(ignored).port();
  }
  return acceptors;
}

}  // namespace

Result<std::vector<Acceptor>> bind_all(asio::io_context& io, const std::vector<std::string>& addresses,
                                       std::uint16_t port) {
  std::vector<asio::ip::address> all;
  for (const auto& text : addresses) {
    Status status;
    all.push_back(asio::ip::make_address(text, status));
    if (status) return usage_error(fmt::format("'{}' is not a numeric address to listen on", text));
  }
  if (all.empty()) return usage_error("there is no address to listen on");
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    auto acceptors = try_bind(io, all, port);
    if (!acceptors) return acceptors.error();
    if (*acceptors) return std::move(**acceptors);
  }
  return unavailable_error("no port is free on all addresses of this machine: choose one");
}

}  // namespace taas::net
