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

Status open(Acceptor& acceptor, const tcp::endpoint& endpoint, int backlog) {
  Status status;
  if (acceptor.open(endpoint.protocol(), status)) return status;
  set_close_on_exec(acceptor.native_handle());
  // A port whose last owner's connections linger is free all the same; one that is listened on is not.
  if (acceptor.set_option(Acceptor::reuse_address(true), status)) return status;
  if (endpoint.address().is_v6() && acceptor.set_option(asio::ip::v6_only(true), status)) return status;
  if (acceptor.bind(endpoint, status)) return status;
  acceptor.listen(backlog, status);
  return status;
}

bool means_not_here(const Status& status) {
  return status == asio::error::address_family_not_supported || status == boost::system::errc::address_not_available;
}

Error cannot_listen(const BindRequest& request, const tcp::endpoint& endpoint, const Status& status) {
  const auto where = fmt::format("{} port {}", endpoint.address().to_string(), endpoint.port());
  if (status == asio::error::address_in_use) {
    return unavailable_error(fmt::format("{} is already in use: {}", where, request.another_port));
  }
  return system_error(fmt::format("cannot listen on {} {}", where, request.purpose), status.value());
}

Result<std::vector<asio::ip::address>> read_addresses(const std::vector<std::string>& texts) {
  std::vector<asio::ip::address> addresses;
  for (const auto& text : texts) {
    Status status;
    addresses.push_back(asio::ip::make_address(text, status));
    if (status) return usage_error(fmt::format("'{}' is not a numeric address to listen on", text));
  }
  if (addresses.empty()) return usage_error("there is no address to listen on");
  return addresses;
}

/// nullopt: the kernel's port is taken on another address, so another has to be tried.
Result<std::optional<std::vector<Acceptor>>> try_bind(asio::io_context& io, const BindRequest& request,
                                                      const std::vector<asio::ip::address>& addresses) {
  std::vector<Acceptor> acceptors;
  std::optional<Error> missing;
  auto port = request.port;
  for (const auto& address : addresses) {
    const tcp::endpoint endpoint(address, port);
    Acceptor acceptor(io);
    const auto status = open(acceptor, endpoint, request.backlog);
    if (status == asio::error::address_in_use && port != request.port) return std::nullopt;
    if (status) missing = cannot_listen(request, endpoint, status);
    if (status && !(request.some_suffice && means_not_here(status))) return *missing;
    if (status) continue;
    Status ignored;
    port = acceptor.local_endpoint(ignored).port();
    acceptors.push_back(std::move(acceptor));
  }
  if (acceptors.empty()) return *missing;
  return acceptors;
}

}  // namespace

Result<std::vector<Acceptor>> bind_all(asio::io_context& io, const BindRequest& request) {
  const auto addresses = read_addresses(request.addresses);
  if (!addresses) return addresses.error();
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    auto acceptors = try_bind(io, request, *addresses);
    if (!acceptors) return acceptors.error();
    if (*acceptors) return std::move(**acceptors);
  }
  return unavailable_error("no port is free on all addresses of this machine: " + request.another_port);
}

}  // namespace taas::net
