#include "start/token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>

#include "base/files.hpp"
#include "net/addresses.hpp"
#include "net/name_lookup.hpp"
#include "node/process/runtime_folder.hpp"
#include "plan/options/launch_settings.hpp"

namespace taas::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr mode_t kForOthers = 077;
constexpr auto kPatienceWithNames = std::chrono::seconds(5);

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

/// Until its name servers have answered, or for as long as a user would wonder.
Result<std::vector<asio::ip::address>> look_up(const std::string& host) {
  boost::system::error_code not_numeric;
  auto numeric = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) return std::vector{numeric};
  asio::io_context io;
  Result<std::vector<asio::ip::address>> found = unavailable_error("no name server has answered yet");
  auto question = net::look_up(io, host, [&found](const auto& answer) { found = answer; });
  io.run_for(kPatienceWithNames);
  return found;
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

/// Where the first node would listen.
struct Place {
  std::vector<std::string> listen;  ///< the addresses that are this machine's; none where the port is taken on one
  bool taken = false;
};

/// Nodes that look for this one where the port is taken would meet somebody else. A machine's own name may stand for
/// loopback in its /etc/hosts: then all of its addresses are meant. Other agents of the same machine look for it where
/// the name leads them.
Result<Place> addresses_of(const plan::Join& mode, const std::vector<asio::ip::address>& found) {
  Place place;
  for (const auto& address : found) {
    auto failed = try_to_listen(address, mode.port);
    if (failed == asio::error::address_in_use) return Place{{}, true};
    if (!failed) place.listen.push_back(address.to_string());
  }
  bool by_name = std::all_of(found.begin(), found.end(), [](const auto& address) { return address.is_loopback(); }) &&
                 !says_loopback(mode.host);
  if (!by_name || place.listen.empty()) return place;
  auto candidates = net::candidate_addresses();
  if (candidates) place.listen.insert(place.listen.end(), candidates->begin(), candidates->end());
  return place;
}

/// The first node does not need its own name: it can be found as soon as the others know it.
FirstNode wait_for_name(const plan::Join& mode, const std::string& why, std::vector<std::string> addresses) {
  FirstNode first;
  first.remark = fmt::format(
      "waiting for the name {}: {}; this node listens on {} port {}, where other nodes find it once they know it by "
      "that name",
      mode.host, why, fmt::join(addresses, ", "), mode.port);
  first.listen_addresses = std::move(addresses);
  return first;
}

std::string print(const asio::ip::address& address) { return address.to_string(); }

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

Result<FirstNode> be_first(const plan::Join& mode, std::vector<std::string> own_addresses,
                           const std::map<std::string, std::string>& environment) {
  auto found = look_up(mode.host);
  if (!found) return wait_for_name(mode, found.error().message, std::move(own_addresses));
  auto claimed = claim(mode, *found, environment);
  auto lock = claimed ? std::move(*claimed) : Fd();  // who was told to be the first needs none
  auto place = addresses_of(mode, *found);
  if (!place) return place.error();
  if (!place->listen.empty()) return FirstNode{std::move(place->listen), std::move(lock)};
  bool is_name = found->front().to_string() != mode.host;
  if (is_name && !place->taken) {
    std::vector<std::string> addresses;
    for (const auto& address : *found) addresses.push_back(print(address));
    auto elsewhere =
        fmt::format("it stands for {}, which is not an address of this machine", fmt::join(addresses, ", "));
    return wait_for_name(mode, elsewhere, std::move(own_addresses));
  }
  return unavailable_error(fmt::format("{}:{} cannot be used on this node, which is to be the first: {}", mode.host,
                                       mode.port,
                                       place->taken ? "the port is taken" : "it is not an address of this machine"));
}

Result<std::optional<FirstNode>> try_to_be_first(const plan::Join& mode, const std::vector<asio::ip::address>& found,
                                                 const std::map<std::string, std::string>& environment) {
  auto lock = claim(mode, found, environment);
  if (!lock) return lock.error();
  if (!*lock) return std::nullopt;
  auto place = addresses_of(mode, found);
  if (!place) return place.error();
  if (place->listen.empty()) return std::nullopt;
  return FirstNode{std::move(place->listen), std::move(*lock)};
}

}  // namespace taas::cli
