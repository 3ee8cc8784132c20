#include "store/listeners.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/ip/v6_only.hpp>
#include <optional>

namespace taas::store {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorStatus = boost::system::error_code;

/// How often another port is tried when the kernel's choice is taken on the IPv6 twin.
constexpr int kPortAttempts = 16;

std::optional<asio::ip::address> ipv6_twin(const asio::ip::address& address) {
  if (address == asio::ip::address_v4::loopback()) return asio::ip::address_v6::loopback();
  if (address == asio::ip::address_v4::any()) return asio::ip::address_v6::any();
  return std::nullopt;
}

ErrorStatus open(Acceptor& acceptor, const tcp::endpoint& endpoint, int backlog) {
  ErrorStatus status;
  if (acceptor.open(endpoint.protocol(), status)) return status;
  set_close_on_exec(acceptor.native_handle());
  // A port whose last owner's connections linger is free all the same; one that is listened on is not.
  if (acceptor.set_option(Acceptor::reuse_address(true), status)) return status;
  if (endpoint.address().is_v6() && acceptor.set_option(asio::ip::v6_only(true), status)) return status;
  if (acceptor.bind(endpoint, status)) return status;
  if (acceptor.listen(backlog, status)) return status;
  acceptor.non_blocking(true, status);
  return status;
}

bool means_no_ipv6(const ErrorStatus& status) {
  return status == asio::error::address_family_not_supported || status == boost::system::errc::address_not_available;
}

Error explain(const tcp::endpoint& endpoint, const ErrorStatus& status) {
  if (status == asio::error::address_in_use) {
    return unavailable_error(
        fmt::format("port {} on {} is already in use: choose another with --master-port or leave it out",
                    endpoint.port(), endpoint.address().to_string()));
  }
  return system_error(
      fmt::format("cannot listen on {} port {} for the store", endpoint.address().to_string(), endpoint.port()),
      status.value());
}

/// nullopt: the kernel's port is taken on the twin, so another has to be tried.
Result<std::optional<std::vector<Acceptor>>> try_bind(asio::io_context& io, tcp::endpoint endpoint, int backlog) {
  const bool any_port = endpoint.port() == 0;
  std::vector<Acceptor> acceptors;
  acceptors.emplace_back(io);
  if (auto status = open(acceptors[0], endpoint, backlog)) return explain(endpoint, status);
  ErrorStatus ignored;
  endpoint.port(acceptors[0].local_endpoint(ignored).port());

  const auto twin = ipv6_twin(endpoint.address());
  if (!twin) return acceptors;
  endpoint.address(*twin);
  acceptors.emplace_back(io);
  const auto status = open(acceptors[1], endpoint, backlog);
  if (!status) return acceptors;
  if (status == asio::error::address_in_use && any_port) return std::nullopt;
  if (!means_no_ipv6(status)) return explain(endpoint, status);
  acceptors.pop_back();
  return acceptors;
}

}  // namespace

Result<std::vector<Acceptor>> bind_listeners(asio::io_context& io, const ServerOptions& options) {
  ErrorStatus status;
  const auto address = asio::ip::make_address(options.address, status);
  if (status) return usage_error(fmt::format("'{}' is not a numeric address to listen on", options.address));
  const tcp::endpoint endpoint(address, options.port);
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    auto acceptors = try_bind(io, endpoint, options.backlog);
    if (!acceptors) return acceptors.error();
    if (*acceptors) return std::move(**acceptors);
  }
  return unavailable_error("no port is free on both 127.0.0.1 and ::1: choose one with --master-port");
}

void set_close_on_exec(int native_handle) { ::fcntl(native_handle, F_SETFD, FD_CLOEXEC); }

}  // namespace taas::store
