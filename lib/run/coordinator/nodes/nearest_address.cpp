#include "run/coordinator/nodes/nearest_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace taas::run {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Empty: no address.
Bytes bytes_of(const std::string& address) {
  std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
  bool is_ipv6 = address.find(':') != address.npos;
  auto text = address.substr(0, address.find('%'));  // without the interface of a link-local address
  if (::inet_pton(is_ipv6 ? AF_INET6 : AF_INET, text.c_str(), bytes.data()) != 1) return {};
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(is_ipv6 ? sizeof(in6_addr) : sizeof(in_addr))};
}

int common_bits(const Bytes& left, const Bytes& right) {
  if (left.size() != right.size()) return -1;
  auto [one, other] = std::mismatch(left.begin(), left.end(), right.begin());
  auto bits = static_cast<int>(one - left.begin()) * 8;
  return one == left.end() ? bits : bits + std::countl_zero(static_cast<std::uint8_t>(*one ^ *other));
}

}  // namespace

std::string nearest_address(const std::vector<std::string>& addresses, const std::string& reference) {
  auto wanted = bytes_of(reference);
  auto nearest = std::max_element(addresses.begin(), addresses.end(), [&](const auto& one, const auto& other) {
    return common_bits(bytes_of(one), wanted) < common_bits(bytes_of(other), wanted);
  });
  return nearest == addresses.end() ? reference : *nearest;
}

std::string endpoint_of(const std::string& address, int port) {
  return address.find(':') == address.npos ? fmt::format("{}:{}", address, port)
                                           : fmt::format("[{}]:{}", address, port);
}

}  // namespace taas::run
