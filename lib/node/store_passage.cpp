#include "node/store_passage.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <utility>

#include "base/log/log.hpp"
#include "net/sockets.hpp"

namespace taas::node {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Status = boost::system::error_code;

/// The store's machine is there, or the client is better told that it is not.
constexpr std::chrono::seconds kConnectPatience{10};

class Passage : public std::enable_shared_from_this<Passage> {
 public:
  Passage(tcp::socket client, std::function<void(const Passage&)> on_closed)
      : client_(std::move(client)),
        store_(client_.get_executor()),
        patience_(client_.get_executor(), kConnectPatience),
        on_closed_(std::move(on_closed)) {}

  void open(const tcp::endpoint& place) {
    if (net::open(store_, place.address())) return close();
    patience_.async_wait([self = shared_from_this()](const Status& status) {
      if (!status) self->close();
    });
    store_.async_connect(place, [self = shared_from_this()](const Status& status) {
      if (status || !self->on_closed_) return self->close();
      self->patience_.cancel();
      self->carry(self->client_, self->store_, self->asked_);
      self->carry(self->store_, self->client_, self->answered_);
    });
  }

  /// The store has said nothing to it yet.
  [[nodiscard]] bool is_stranger() const { return is_stranger_; }

  /// A client of the store says all it has to say before it goes.
  void close() {
    patience_.cancel();
    Status ignored;
    client_.close(ignored);
    store_.close(ignored);
    if (auto told = std::exchange(on_closed_, nullptr)) told(*this);
  }

 private:
  using Buffer = std::array<char, 16 * 1024>;

  void carry(tcp::socket& from, tcp::socket& to, Buffer& buffer) {
    from.async_read_some(asio::buffer(buffer),
                         [self = shared_from_this(), &from, &to, &buffer](const Status& status, std::size_t count) {
                           if (status) return self->close();
                           if (&from == &self->store_) self->is_stranger_ = false;
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

  tcp::socket client_;
  tcp::socket store_;
  asio::steady_timer patience_;
  std::function<void(const Passage&)> on_closed_;  // null once closed
  bool is_stranger_ = true;
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

struct StorePassages::State : std::enable_shared_from_this<State> {
  explicit State(std::size_t limit) : most(limit) {}

  bool make_room() {
    if (open.size() < most) return true;
    const auto stranger = std::ranges::find_if(open, &Passage::is_stranger);
    if (stranger == open.end()) return false;
    const auto closed = *stranger;
    closed->close();
    return true;
  }

  void add(tcp::socket client, const tcp::endpoint& place) {
    auto on_closed = [weak = weak_from_this()](const Passage& closed) {
      const auto self = weak.lock();
      if (self) std::erase_if(self->open, [&closed](const auto& passage) { return passage.get() == &closed; });
    };
    open.push_back(std::make_shared<Passage>(std::move(client), std::move(on_closed)));
    const auto passage = open.back();
    passage->open(place);
  }

  std::size_t most;
  std::list<std::shared_ptr<Passage>> open;  // the oldest first
};

StorePassages::StorePassages(std::size_t most) : state_(std::make_shared<State>(most)) {}

StorePassages::~StorePassages() {
  for (const auto& passage : std::exchange(state_->open, {})) passage->close();
}

std::size_t StorePassages::count() const { return state_->open.size(); }

void StorePassages::lead(tcp::socket client, const StorePlace& place) {
  Status invalid;
  auto address = asio::ip::make_address(place.address, invalid);
  if (invalid) return;
  if (!state_->make_room()) {
    log::info(LogPart::kStore, "a client that came to the meeting port is turned away: there are {}", state_->most);
    return;
  }
  state_->add(std::move(client), {address, place.port});
}

}  // namespace taas::node
