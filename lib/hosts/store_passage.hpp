#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

namespace taas::hosts {

/// Where the store of a generation is.
struct StorePlace {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
};

/// Leads a client of the store that came to another port to where the store is, for as long as both ends are open. A
/// program that names the address and the port of --master-addr and --master-port itself finds the store there under
/// torchrun.
void lead_to_store(boost::asio::ip::tcp::socket client, const StorePlace& place);

}  // namespace taas::hosts
