#include "net/addresses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstring>
#include <set>

namespace taas::net {

namespace {

using boost::asio::ip::address;

struct InterfaceAddress {
  std::string interface;
  address value;
};

/// IPv4 and IPv6; anything else is unspecified.
address read_address(const sockaddr* socket_address) {
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket_address, sizeof(v4));
    return boost::asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (socket_address->sa_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, socket_address, sizeof(v6));
  boost::asio::ip::address_v6::bytes_type bytes{};
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return boost::asio::ip::address_v6(bytes);
}

/// Of the interfaces that are up.
std::vector<InterfaceAddress> list_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const auto* entry = first; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const auto value = read_address(entry->ifa_addr);
    if (!value.is_unspecified()) addresses.push_back({entry->ifa_name, value});
  }
  return addresses;
}

bool is_link_local(const address& value) {
  if (value.is_v6()) return value.to_v6().is_link_local();
  return (value.to_v4().to_uint() & 0xffff0000) == 0xa9fe0000;  // 169.254.0.0/16, RFC 3927
}

Error no_such_interface(const std::string& wanted, const std::vector<InterfaceAddress>& addresses) {
  std::set<std::string> names;
  for (const auto& [interface, value] : addresses) names.insert(interface);
  return usage_error(fmt::format("no address that others can reach on an interface '{}': there are {}", wanted,
                                 fmt::join(names, ", ")));
}

}  // namespace

Result<std::vector<std::string>> candidate_addresses(const std::string& interface) {
  const auto all = list_addresses();
  std::vector<address> chosen;
  for (const auto& [name, value] : all) {
    const bool wanted = interface.empty() ? !value.is_loopback() : name == interface;
    if (wanted && !is_link_local(value)) chosen.push_back(value);
  }
  if (!interface.empty() && chosen.empty()) return no_such_interface(interface, all);
  std::stable_partition(chosen.begin(), chosen.end(), [](const address& value) { return value.is_v4(); });
  std::vector<std::string> texts;
  for (const auto& value : chosen) texts.push_back(value.to_string());
  return texts;
}

std::string loopback_address() {
  const bool only_v6 = interface_of("127.0.0.1").empty() && !interface_of("::1").empty();
  return only_v6 ? "::1" : "127.0.0.1";
}

std::string interface_of(std::string_view text) {
  boost::system::error_code status;
  const auto wanted = boost::asio::ip::make_address(text, status);
  if (status) return {};
  for (const auto& [interface, value] : list_addresses()) {
    if (value == wanted) return interface;
  }
  return {};
}

}  // namespace taas::net
