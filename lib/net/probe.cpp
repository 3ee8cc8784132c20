#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <utility>

#include "base/log/log.hpp"
#include "net/addresses.hpp"
#include "net/sockets.hpp"

namespace taas::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using OnDone = std::function<void(std::vector<std::string>, std::string)>;

/// Connections to all addresses at the same time. Nothing is said on them.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(asio::io_context& io, std::uint16_t port, OnDone on_done)
      : io_(io), port_(port), on_done_(std::move(on_done)), timer_(io) {}

  void start(const std::vector<std::string>& addresses, std::chrono::milliseconds patience) {
    timer_.expires_after(patience);
    timer_.async_wait([weak = weak_from_this()](const error_code& status) {
      const auto self = weak.lock();
      if (self && !status) self->finish();
    });
    for (const auto& address : addresses) knock(address);
    if (open_ == 0) finish();
  }

  void cancel() {
    on_done_ = nullptr;
    timer_.cancel();
    error_code ignored;
    for (auto& target : targets_) target.socket.close(ignored);
  }

 private:
  struct Target {
    std::string address;
    tcp::socket socket;
    bool reached = false;
    std::string from{};  ///< this end's address, once reached
  };

  void knock(const std::string& address) {
    error_code status;
    const auto numeric = asio::ip::make_address(address, status);
    if (status) return;
    auto& target = targets_.emplace_back(Target{address, tcp::socket(io_)});
    if (net::open(target.socket, numeric)) return;
    ++open_;
    target.socket.async_connect(tcp::endpoint(numeric, port_), [weak = weak_from_this(), &target](error_code why) {
      const auto self = weak.lock();
      if (self && self->on_done_) self->on_answer(target, why);
    });
  }

  void on_answer(Target& target, const error_code& status) {
    error_code ignored;
    target.reached = !status;
    log::debug(LogPart::kNet, "probe of {} port {}: {}", target.address, port_, status ? explain(status) : "reached");
    if (target.reached) target.from = target.socket.local_endpoint(ignored).address().to_string();
    target.socket.close(ignored);
    if (--open_ == 0) finish();
  }

  void finish() {
    std::vector<std::string> reached;
    std::string interface;
    for (const auto& target : targets_) {
      if (!target.reached) continue;
      if (reached.empty()) interface = interface_of(target.from);
      reached.push_back(target.address);
    }
    const auto on_done = std::move(on_done_);
    cancel();
    on_done(std::move(reached), std::move(interface));
  }

  asio::io_context& io_;
  std::uint16_t port_;
  OnDone on_done_;  ///< null once finished
  asio::steady_timer timer_;
  std::list<Target> targets_;
  int open_ = 0;
};

class ProbeHandle : public Connecting {
 public:
  explicit ProbeHandle(std::shared_ptr<Probe> probe) : probe_(std::move(probe)) {}
  ~ProbeHandle() override { probe_->cancel(); }

 private:
  std::shared_ptr<Probe> probe_;
};

}  // namespace

std::unique_ptr<Connecting> probe(asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port,
                                  std::chrono::milliseconds patience, OnDone on_done) {
  auto probe = std::make_shared<Probe>(io, port, std::move(on_done));
  asio::post(io, [weak = std::weak_ptr(probe), addresses = std::move(addresses), patience] {
    if (const auto self = weak.lock()) self->start(addresses, patience);
  });
  return std::make_unique<ProbeHandle>(std::move(probe));
}

}  // namespace taas::net
