#include "store/listeners.hpp"

#include <algorithm>

#include "net/bind.hpp"

namespace taas::store {

namespace {

/// Only loopback has one: who resolves "localhost" may come to either.
std::vector<std::string> with_ipv6_twins(std::vector<std::string> addresses) {
  const auto has = [&](const char* address) { return std::ranges::find(addresses, address) != addresses.end(); };
  if (has("127.0.0.1") && !has("::1")) addresses.emplace_back("::1");
  return addresses;
}

}  // namespace

Result<std::vector<net::Acceptor>> bind_listeners(boost::asio::io_context& io, const ServerOptions& options) {
  auto acceptors = net::bind_all(io, {.addresses = with_ipv6_twins(options.addresses),
                                      .port = options.port,
                                      .backlog = options.backlog,
                                      .some_suffice = true,
                                      .purpose = "for the store",
                                      .another_port = "choose another with --master-port or leave it out"});
  if (!acceptors) return acceptors;
  for (auto& acceptor : *acceptors) {
    boost::system::error_code status;
    acceptor.non_blocking(true, status);
    if (status) return system_error("cannot listen for the store", status.value());
  }
  return acceptors;
}

}  // namespace taas::store
