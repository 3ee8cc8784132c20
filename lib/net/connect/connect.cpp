#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "base/log/log.hpp"
#include "net/connect/attempt.hpp"
#include "net/link.hpp"
#include "net/name_lookup.hpp"
#include "net/sockets.hpp"

namespace taas::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Attempts at all addresses at the same time; the first link ends the race, or the last failure.
class Race : public std::enable_shared_from_this<Race> {
 public:
  Race(asio::io_context& io, ConnectOptions options, std::function<void(Result<std::unique_ptr<Link>>)> on_done)
      : io_(io), options_(std::move(options)), on_done_(std::move(on_done)), timer_(io) {}

  void start() {
    auto tls = Tls::make(Role::kClient, options_.secret);
    if (!tls) return finish(tls.error());
    tls_ = std::move(*tls);
    timer_.expires_after(options_.patience);
    timer_.async_wait([weak = weak_from_this()](const error_code& status) {
      const auto self = weak.lock();
      if (self && !status) self->time_out();
    });
    for (const auto& address : options_.addresses) {
      if (on_done_) enter(address);
    }
    if (runners_.empty()) finish(usage_error("there is no address to connect to"));
  }

  void cancel() {
    on_done_ = nullptr;
    timer_.cancel();
    for (auto& runner : runners_) {
      runner.lookup.reset();
      if (runner.attempt) runner.attempt->cancel();
    }
  }

 private:
  struct Runner {
    std::string name;
    std::unique_ptr<Connecting> lookup = {};     ///< of the name, until its addresses are known
    std::shared_ptr<Attempt> attempt = nullptr;  ///< from then on
    std::string failure = {};                    ///< not empty: it has given up
    bool nameless = false;                       ///< that was because no address is known for its name
  };

  void enter(const std::string& address) {
    error_code status;
    const auto numeric = asio::ip::make_address(address, status);
    const auto number = runners_.size();
    runners_.push_back({address});
    if (!status) return may_try({numeric}) ? run(number, numeric) : cancel();
    runners_[number].lookup = look_up(io_, address, [weak = weak_from_this(), number](const auto& found) {
      const auto self = weak.lock();
      if (self && self->on_done_) self->on_found(number, found);
    });
  }

  bool may_try(const std::vector<asio::ip::address>& found) { return !options_.on_found || options_.on_found(found); }

  /// The first of a name's addresses runs in its place, the others join.
  void on_found(std::size_t number, const Result<std::vector<asio::ip::address>>& found) {
    if (!found) {
      runners_[number].nameless = found.error().system_errno == EADDRNOTAVAIL;
      return fail(number, found.error().message);
    }
    if (!may_try(*found)) return cancel();
    const auto name = runners_[number].name;
    for (const auto& address : *found) {
      if (runners_[number].attempt) {
        number = runners_.size();
        runners_.emplace_back();
      }
      runners_[number].name = fmt::format("{} ({})", name, address.to_string());
      run(number, address);
    }
  }

  void run(std::size_t number, const asio::ip::address& address) {
    auto on_end = [weak = weak_from_this(), number](std::shared_ptr<TlsLink> link, const std::string& failure) {
      const auto self = weak.lock();
      if (!self || !self->on_done_) return link ? link->abandon() : void();
      if (!link) return self->fail(number, failure);
      self->finish(make_link(std::move(link)));
    };
    log::debug(LogPart::kNet, "connecting to {} port {}", runners_[number].name, options_.port);
    runners_[number].attempt = std::make_shared<Attempt>(io_, tls_, std::move(on_end));
    runners_[number].attempt->start(tcp::endpoint(address, options_.port));
  }

  void fail(std::size_t number, const std::string& reason) {
    log::debug(LogPart::kNet, "no connection to {} port {}: {}", runners_[number].name, options_.port, reason);
    runners_[number].failure = reason;
    for (const auto& runner : runners_) {
      if (runner.failure.empty()) return;
    }
    give_up();
  }

  void time_out() {
    for (auto& runner : runners_) {
      if (!runner.failure.empty()) continue;
      runner.nameless = !runner.attempt;
      runner.failure = runner.attempt ? "timed out" : "no name server has answered yet";
    }
    give_up();
  }

  void give_up() {
    std::vector<std::string> failures;
    bool refused = true;
    bool nameless = true;
    for (const auto& runner : runners_) {
      failures.push_back(fmt::format("{} port {}: {}", runner.name, options_.port, runner.failure));
      refused = refused && runner.failure == explain(asio::error::connection_refused);
      nameless = nameless && runner.nameless;
    }
    auto error = unavailable_error(fmt::format("{}", fmt::join(failures, "; ")));
    if (refused) error.system_errno = ECONNREFUSED;
    if (nameless) error.system_errno = EADDRNOTAVAIL;
    finish(std::move(error));
  }

  void finish(Result<std::unique_ptr<Link>> result) {
    const auto on_done = std::move(on_done_);
    cancel();
    on_done(std::move(result));
  }

  asio::io_context& io_;
  ConnectOptions options_;
  std::function<void(Result<std::unique_ptr<Link>>)> on_done_;  ///< null once finished
  std::shared_ptr<Tls> tls_;
  asio::steady_timer timer_;
  std::vector<Runner> runners_;
};

class RaceHandle : public Connecting {
 public:
  explicit RaceHandle(std::shared_ptr<Race> race) : race_(std::move(race)) {}
  ~RaceHandle() override { race_->cancel(); }

 private:
  std::shared_ptr<Race> race_;
};

}  // namespace

std::unique_ptr<Connecting> connect(asio::io_context& io, ConnectOptions options,
                                    std::function<void(Result<std::unique_ptr<Link>>)> on_done) {
  auto race = std::make_shared<Race>(io, std::move(options), std::move(on_done));
  asio::post(io, [weak = std::weak_ptr(race)] {
    if (const auto self = weak.lock()) self->start();
  });
  return std::make_unique<RaceHandle>(std::move(race));
}

}  // namespace taas::net
