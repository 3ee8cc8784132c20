#include "start/token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "base/files.hpp"
#include "net/addresses.hpp"
#include "node/process/runtime_folder.hpp"
#include "plan/options/launch_settings.hpp"

namespace taas::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr mode_t kForOthers = 077;

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

/// Of a file: a pipe, as shells make of <(command), is nobody else's anyway.
Result<> check_mode(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot be read", errno);
  if (!S_ISREG(status.st_mode) || (status.st_mode & kForOthers) == 0) return {};
  return usage_error(
      fmt::format("others may read or write this secret (mode {:04o}): chmod 600 it, or where it cannot be changed "
                  "set {}=$(cat FILE) instead; make another if they may have read it",
                  status.st_mode & 07777, plan::kTokenVariable));
}

Result<std::string> read_token_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("cannot be opened", errno);
  if (auto good = check_mode(file); !good) return good.error();
  return read_all(file);
}

Result<std::string> read_token(const plan::NodesOptions& nodes, const std::string& variable) {
  if (!nodes.token_file) return trimmed(variable);
  auto text = read_token_file(*nodes.token_file);
  if (!text) return usage_error(fmt::format("--token-file {}: {}", *nodes.token_file, text.error().message));
  return trimmed(std::move(*text));
}

Result<std::vector<asio::ip::address>> resolve(const plan::Join& mode) {
  asio::io_context io;
  tcp::resolver resolver(io);
  boost::system::error_code failed;
  auto found = resolver.resolve(mode.host, std::to_string(mode.port), failed);
  if (failed) return usage_error(fmt::format("{}: {}", mode.host, failed.message()));
  std::vector<asio::ip::address> addresses;
  for (const auto& entry : found) addresses.push_back(entry.endpoint().address());
  return addresses;
}

/// What keeps this process from listening there; no error: nothing does. Another machine's address is
/// address_not_available.
boost::system::error_code try_to_listen(const asio::ip::address& address, std::uint16_t port) {
  asio::io_context io;
  tcp::acceptor acceptor(io);
  boost::system::error_code failed;
  tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed && address.is_v6()) acceptor.set_option(asio::ip::v6_only(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(1, failed);
  return failed;
}

bool says_loopback(const std::string& host) { return host == "localhost" || host.starts_with("127.") || host == "::1"; }

/// None where the port is taken on one of them: nodes that look for this one there would meet somebody else. A
/// machine's own name may stand for loopback in its /etc/hosts: then all of its addresses are meant. Other agents of
/// the same machine look for it where the name leads them.
Result<std::vector<std::string>> own_addresses(const plan::Join& mode, const std::vector<asio::ip::address>& found) {
  std::vector<std::string> addresses;
  for (const auto& address : found) {
    auto failed = try_to_listen(address, mode.port);
    if (failed == asio::error::address_in_use) return std::vector<std::string>();
    if (!failed) addresses.push_back(address.to_string());
  }
  bool by_name = std::all_of(found.begin(), found.end(), [](const auto& address) { return address.is_loopback(); }) &&
                 !says_loopback(mode.host);
  if (!by_name || addresses.empty()) return addresses;
  auto candidates = net::candidate_addresses();
  if (candidates) addresses.insert(addresses.end(), candidates->begin(), candidates->end());
  return addresses;
}

/// Machines of a container or a test may share a folder and not the network.
std::string network_here() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/ns/net", unknown).string();
}

/// Two agents on one machine may find the port free at the same moment: the one that gets this lock, which the kernel
/// takes back when its holder ends, coordinates. Empty: another one of this user's has it. In a private folder, since
/// any name that others can take they can take first, and then all agents would wait for a coordinator.
Result<Fd> claim(const plan::Join& mode, const std::vector<asio::ip::address>& found,
                 const std::map<std::string, std::string>& environment) {
  auto folder = node::runtime_folder(environment);
  if (!folder) return folder.error();
  auto name = fmt::format("port-{}-{}", mode.port, network_here());
  auto sorted = found;  // a name server may give them in another order each time
  std::sort(sorted.begin(), sorted.end());
  for (const auto& each : sorted) name += "-" + each.to_string();
  auto lock = node::open_lock(fmt::format("{}/{}", *folder, name.substr(0, NAME_MAX)));
  if (!lock) return lock;
  return ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0 ? std::move(lock) : Result<Fd>(Fd());
}

}  // namespace

Result<net::Secret> joining_secret(const plan::Join& mode, const plan::NodesOptions& nodes,
                                   const std::string& variable) {
  auto token = read_token(nodes, variable);
  if (!token) return token.error();
  auto run_id = "join " + mode.rendezvous_id;
  auto key = net::derive_key(*token, run_id);
  if (!key) return key.error();
  return net::Secret{run_id, std::move(*key)};
}

Result<JoiningRole> choose_role(const plan::Join& mode, const std::map<std::string, std::string>& environment) {
  auto told = mode.node_rank ? std::optional<bool>(*mode.node_rank == 0) : mode.is_host;
  if (told == false) return JoiningRole{};
  auto found = resolve(mode);
  if (!found) return told ? Result<JoiningRole>(found.error()) : JoiningRole{};
  auto claimed = claim(mode, *found, environment);
  if (!claimed && !told) return claimed.error();
  auto lock = claimed ? std::move(*claimed) : Fd();  // who was told to be the first needs none
  if (!lock && !told) return JoiningRole{};
  auto addresses = own_addresses(mode, *found);
  if (!addresses) return addresses.error();
  if (told == true && addresses->empty()) {
    return unavailable_error(
        fmt::format("{}:{} cannot be used on this node, which is to be the first: it is not an address "
                    "of this machine, or the port is taken",
                    mode.host, mode.port));
  }
  return JoiningRole{!addresses->empty(), std::move(*addresses), std::move(lock)};
}

}  // namespace taas::cli
