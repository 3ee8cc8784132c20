#pragma once

#include <string>
#include <vector>

namespace taas::run {

/// Which of a node's numeric addresses is most likely in the same network as `reference`: the one with the most leading
/// bits in common, the first of these. `reference` itself when there is none.
std::string nearest_address(const std::vector<std::string>& addresses, const std::string& reference);

/// "address:port", with brackets for IPv6.
std::string endpoint_of(const std::string& address, int port);

}  // namespace taas::run
