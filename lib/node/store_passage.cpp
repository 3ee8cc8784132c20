#include "node/store_passage.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

namespace taas::node {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Status = boost::system::error_code;

class Passage : public std::enable_shared_from_this<Passage> {
 public:
  explicit Passage(tcp::socket client) : client_(std::move(client)), store_(client_.get_executor()) {}

  void open(const tcp::endpoint& place) {
    store_.async_connect(place, [self = shared_from_this()](const Status& status) {
      if (status) return self->close();
      Status ignored;
      self->store_.set_option(tcp::no_delay(true), ignored);
      self->client_.set_option(tcp::no_delay(true), ignored);
      self->carry(self->client_, self->store_, self->asked_);
      self->carry(self->store_, self->client_, self->answered_);
    });
  }

 private:
  using Buffer = std::array<char, 16 * 1024>;

  void carry(tcp::socket& from, tcp::socket& to, Buffer& buffer) {
    from.async_read_some(asio::buffer(buffer),
                         [self = shared_from_this(), &from, &to, &buffer](const Status& status, std::size_t count) {
                           if (status) return self->close();
                           self->pass(from, to, buffer, count);
                         });
  }

  void pass(tcp::socket& from, tcp::socket& to, Buffer& buffer, std::size_t count) {
    asio::async_write(to, asio::buffer(buffer.data(), count),
                      [self = shared_from_this(), &from, &to, &buffer](const Status& status, std::size_t) {
                        if (status) return self->close();
                        self->carry(from, to, buffer);
                      });
  }

  /// A client of the store says all it has to say before it goes.
  void close() {
    Status ignored;
    client_.close(ignored);
    store_.close(ignored);
  }

  tcp::socket client_;
  tcp::socket store_;
  Buffer asked_;
  Buffer answered_;
};

bool is_loopback(const std::string& text) {
  Status invalid;
  const auto address = asio::ip::make_address(text, invalid);
  return !invalid && address.is_loopback();
}

}  // namespace

std::string MeetingPlace::address_for(const std::string& master_addr) const {
  if (std::find(addresses.begin(), addresses.end(), master_addr) != addresses.end()) return master_addr;
  const bool one_machine = std::all_of(addresses.begin(), addresses.end(), is_loopback);
  return one_machine && !addresses.empty() ? addresses.front() : std::string();
}

void lead_to_store(tcp::socket client, const StorePlace& place) {
  Status invalid;
  auto address = asio::ip::make_address(place.address, invalid);
  if (invalid) return;
  std::make_shared<Passage>(std::move(client))->open({address, place.port});
}

}  // namespace taas::node
