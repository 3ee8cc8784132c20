#include "store/listeners.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <optional>

namespace taas::store {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorStatus = boost::system::error_code;

/// How often another port is tried when the kernel's choice is taken on a further address.
constexpr int kPortAttempts = 16;

std::optional<asio::ip::address> ipv6_twin(const asio::ip::address& address) {
  if (address == asio::ip::address_v4::loopback()) return asio::ip::address_v6::loopback();
  return std::nullopt;
}

/// What to bind: the addresses and their twins.
Result<std::vector<asio::ip::address>> read_places(const std::vector<std::string>& addresses) {
  std::vector<asio::ip::address> places;
  for (const auto& text : addresses) {
    ErrorStatus status;
    const auto address = asio::ip::make_address(text, status);
    if (status) return usage_error(fmt::format("'{}' is not a numeric address to listen on", text));
    places.push_back(address);
    const auto twin = ipv6_twin(address);
    if (twin && std::ranges::find(addresses, twin->to_string()) == addresses.end()) places.push_back(*twin);
  }
  if (places.empty()) return usage_error("there is no address to listen on");
  return places;
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

bool means_not_here(const ErrorStatus& status) {
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

/// nullopt: the kernel's port is taken on a further address, so another has to be tried. An address that this machine
/// has no more, or not yet, matters only if there is no other.
Result<std::optional<std::vector<Acceptor>>> try_bind(asio::io_context& io,
                                                      const std::vector<asio::ip::address>& places,
                                                      const ServerOptions& options) {
  std::vector<Acceptor> acceptors;
  std::optional<Error> missing;
  auto port = options.port;
  for (const auto& place : places) {
    const tcp::endpoint endpoint(place, port);
    Acceptor acceptor(io);
    const auto status = open(acceptor, endpoint, options.backlog);
    if (status == asio::error::address_in_use && port != options.port) return std::nullopt;
    if (status && !means_not_here(status)) return explain(endpoint, status);
    if (status) missing = explain(endpoint, status);
    if (status) continue;
    ErrorStatus ignored;
    port = acceptor.local_endpoint(ignored).port();
    acceptors.push_back(std::move(acceptor));
  }
  if (acceptors.empty()) return *missing;
  return acceptors;
}

}  // namespace

Result<std::vector<Acceptor>> bind_listeners(asio::io_context& io, const ServerOptions& options) {
  const auto places = read_places(options.addresses);
  if (!places) return places.error();
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    auto acceptors = try_bind(io, *places, options);
    if (!acceptors) return acceptors.error();
    if (*acceptors) return std::move(**acceptors);
  }
  return unavailable_error("no port is free on all addresses of this machine: choose one with --master-port");
}

void set_close_on_exec(int native_handle) { ::fcntl(native_handle, F_SETFD, FD_CLOEXEC); }

}  // namespace taas::store
