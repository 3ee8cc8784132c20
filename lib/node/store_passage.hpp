#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  std::size_t most_passages = 0;  ///< StorePassages that there may be

  /// By which address ranks reach this place, if the store's own one is `master_addr`: the same, or a loopback one
  /// where nodes met on loopback and so are one machine. Empty: not all of them may reach it.
  [[nodiscard]] std::string address_for(const std::string& master_addr) const;
};

/// Lead clients of the store that came to another port to where the store is, each for as long as both ends are open. A
/// program that names the address and the port of --master-addr and --master-port itself finds the store there under
/// torchrun. No secret is asked for: at most `most` are there at a time, and the one that has waited longest for the
/// store to say anything to it makes room for another client. Where all have been answered, that is turned away.
class StorePassages {
 public:
  explicit StorePassages(std::size_t most);
  ~StorePassages();
  StorePassages(const StorePassages&) = delete;
  StorePassages& operator=(const StorePassages&) = delete;

  void lead(boost::asio::ip::tcp::socket client, const StorePlace& place);
  [[nodiscard]] std::size_t count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
