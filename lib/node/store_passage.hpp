#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace taas::node {

/// Where the store of a generation is.
struct StorePlace {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
};

/// Where the nodes of a run that joined have met.
struct MeetingPlace {
  std::vector<std::string> addresses;  ///< numeric; none: they did not meet
  std::uint16_t port = 0;

  /// By which address ranks reach this place, if the store's own one is `master_addr`: the same, or a loopback one
  /// where nodes met on loopback and so are one machine. Empty: not all of them may reach it.
  [[nodiscard]] std::string address_for(const std::string& master_addr) const;
};

/// Leads a client of the store that came to another port to where the store is, for as long as both ends are open. A
/// program that names the address and the port of --master-addr and --master-port itself finds the store there under
/// torchrun.
void lead_to_store(boost::asio::ip::tcp::socket client, const StorePlace& place);

}  // namespace taas::node
