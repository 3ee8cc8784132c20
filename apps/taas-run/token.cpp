#include "token.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>

#include "base/files.hpp"
#include "net/addresses.hpp"
#include "plan/launch_settings.hpp"

namespace taas::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

Result<std::string> read_token(const plan::NodesOptions& nodes, const std::map<std::string, std::string>& environment) {
  if (nodes.token_file) {
    auto text = read_file(*nodes.token_file);
    if (!text) return usage_error(fmt::format("--token-file {}: {}", *nodes.token_file, text.error().message));
    return trimmed(std::move(*text));
  }
  auto found = environment.find(plan::kTokenVariable);
  return found == environment.end() ? std::string() : trimmed(found->second);
}

Result<std::vector<asio::ip::address>> resolve(const plan::Join& way) {
  asio::io_context io;
  tcp::resolver resolver(io);
  boost::system::error_code failed;
  auto found = resolver.resolve(way.host, std::to_string(way.port), failed);
  if (failed) return usage_error(fmt::format("{}: {}", way.host, failed.message()));
  std::vector<asio::ip::address> addresses;
  for (const auto& entry : found) addresses.push_back(entry.endpoint().address());
  return addresses;
}

/// Whether this machine has the address and nobody listens there yet.
bool can_bind(const asio::ip::address& address, std::uint16_t port) {
  asio::io_context io;
  tcp::acceptor acceptor(io);
  boost::system::error_code failed;
  tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(1, failed);
  return !failed;
}

bool says_loopback(const std::string& host) { return host == "localhost" || host.starts_with("127.") || host == "::1"; }

/// A machine's own name may stand for loopback in its /etc/hosts: then all of its addresses are meant.
Result<std::vector<std::string>> own_addresses(const plan::Join& way, const std::vector<asio::ip::address>& found) {
  std::vector<std::string> addresses;
  for (const auto& address : found) {
    if (can_bind(address, way.port)) addresses.push_back(address.to_string());
  }
  bool by_name = std::all_of(found.begin(), found.end(), [](const auto& address) { return address.is_loopback(); }) &&
                 !says_loopback(way.host);
  if (!by_name || addresses.empty()) return addresses;
  auto candidates = net::candidate_addresses();
  if (candidates && !candidates->empty()) return candidates;
  return addresses;
}

/// Two agents on one machine may find the port free at the same moment: the one that gets this name, which the kernel
/// gives once and takes back when its holder ends, coordinates. Empty: another one has it.
Fd claim(const std::vector<asio::ip::address>& found, std::uint16_t port) {
  auto name = fmt::format("taas-run at port {}", port);
  for (const auto& each : found) name += " " + each.to_string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.resize(std::min(name.size(), sizeof(address.sun_path) - 1));
  name.copy(address.sun_path + 1, name.size());  // behind a zero: no file
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return {};
  return socket;
}

}  // namespace

Result<net::Secret> joining_secret(const plan::Join& way, const plan::NodesOptions& nodes,
                                   const std::map<std::string, std::string>& environment) {
  auto token = read_token(nodes, environment);
  if (!token) return token.error();
  auto run_id = "join " + way.rendezvous_id;
  auto key = net::derive_key(*token, run_id);
  if (!key) return key.error();
  return net::Secret{run_id, std::move(*key)};
}

Result<JoiningRole> choose_role(const plan::Join& way) {
  auto told = way.node_rank ? std::optional<bool>(*way.node_rank == 0) : way.is_host;
  if (told == false) return JoiningRole{};
  auto found = resolve(way);
  if (!found) return told ? Result<JoiningRole>(found.error()) : JoiningRole{};
  auto claimed = claim(*found, way.port);
  if (!claimed && !told) return JoiningRole{};
  auto addresses = own_addresses(way, *found);
  if (!addresses) return addresses.error();
  if (told == true && addresses->empty()) {
    return unavailable_error(
        fmt::format("{}:{} cannot be used on this node, which is to be the first: it is no address "
                    "of this machine, or the port is taken",
                    way.host, way.port));
  }
  return JoiningRole{!addresses->empty(), std::move(*addresses), std::move(claimed)};
}

}  // namespace taas::cli
