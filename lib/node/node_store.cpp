#include "node/node_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace taas::node {

Result<> NodeStore::open(boost::asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port,
                         int most_clients, Callbacks callbacks) {
  if (addresses.empty()) return {};
  callbacks_ = std::move(callbacks);
  addresses_ = std::move(addresses);
  store::ServerOptions listen;
  listen.addresses = addresses_;
  listen.port = port;
  listen.most_clients = most_clients;
  store::Observer observer;
  observer.on_joined = callbacks_.joined;
  observer.on_reached = callbacks_.reached;
  observer.on_refused = [this](const Error& why) { tell_limit(why); };
  auto listening = store::Server::listen(io, listen, std::move(observer));
  if (!listening) return listening.error();
  server_ = std::move(*listening);
  server_->rest();
  port_ = server_->port();
  return {};
}

void NodeStore::begin_generation(const std::string& master_addr) {
  if (!server_) return;
  const bool chosen = std::find(addresses_.begin(), addresses_.end(), master_addr) != addresses_.end();
  server_->begin_generation(chosen && addresses_.size() > 1 ? master_addr : std::string());
}

void NodeStore::rest() {
  if (server_) server_->rest();
}

/// Who leaves the protocol is a stranger. For whom there is no room may be a rank, which is told nothing but that its
/// connection is closed.
void NodeStore::tell_limit(const Error& why) {
  if (why.code != ErrorCode::kUnavailable || std::exchange(limit_told_, true)) return;
  callbacks_.remark(fmt::format(
      "the store closed the connection of a client: {}; --store rank0 has torch's own store, without limits",
      why.message));
}

}  // namespace taas::node
