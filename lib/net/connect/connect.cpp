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
      : io_(io), options_(std::move(options)), on_done_(std::move(on_done)), resolver_(io), timer_(io) {}

  void start() {
    auto tls = Tls::make(Role::kClient, options_.secret);
    if (!tls) return finish(tls.error());
    tls_ = std::move(*tls);
    timer_.expires_after(options_.patience);
    timer_.async_wait([weak = weak_from_this()](const error_code& status) {
      const auto self = weak.lock();
      if (self && !status) self->time_out();
    });
    for (const auto& address : options_.addresses) enter(address);
    if (runners_.empty()) finish(usage_error("there is no address to connect to"));
  }

  void cancel() {
    on_done_ = nullptr;
    timer_.cancel();
    resolver_.cancel();
    for (const auto& runner : runners_) {
      if (runner.attempt) runner.attempt->cancel();
    }
  }

 private:
  struct Runner {
    std::string name;
    std::shared_ptr<Attempt> attempt;  ///< null while its name is looked up
    std::string failure;               ///< not empty: it has given up
  };

  void enter(const std::string& address) {
    error_code status;
    const auto numeric = asio::ip::make_address(address, status);
    const auto number = runners_.size();
    runners_.push_back({address, nullptr, {}});
    if (!status) return run(number, tcp::endpoint(numeric, options_.port));
    resolver_.async_resolve(
        address, std::to_string(options_.port), tcp::resolver::numeric_service,
        [weak = weak_from_this(), number](const error_code& why, const tcp::resolver::results_type& found) {
          const auto self = weak.lock();
          if (self && self->on_done_) self->on_resolved(number, why, found);
        });
  }

  /// The first of a name's addresses runs in its place, the others join.
  void on_resolved(std::size_t number, const error_code& why, const tcp::resolver::results_type& found) {
    if (why) return fail(number, explain(why));
    const auto name = runners_[number].name;
    for (const auto& entry : found) {
      const auto label = fmt::format("{} ({})", name, entry.endpoint().address().to_string());
      if (runners_[number].attempt) {
        number = runners_.size();
        runners_.emplace_back();
      }
      runners_[number].name = label;
      run(number, entry.endpoint());
    }
  }

  void run(std::size_t number, const tcp::endpoint& endpoint) {
    auto on_end = [weak = weak_from_this(), number](std::shared_ptr<TlsLink> link, const std::string& failure) {
      const auto self = weak.lock();
      if (!self || !self->on_done_) return link ? link->abandon() : void();
      if (!link) return self->fail(number, failure);
      self->finish(make_link(std::move(link)));
    };
    log::debug(LogPart::kNet, "connecting to {} port {}", runners_[number].name, options_.port);
    runners_[number].attempt = std::make_shared<Attempt>(io_, tls_, std::move(on_end));
    runners_[number].attempt->start(endpoint);
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
      if (runner.failure.empty()) runner.failure = "timed out";
    }
    give_up();
  }

  void give_up() {
    std::vector<std::string> failures;
    bool refused = true;
    for (const auto& runner : runners_) {
      failures.push_back(fmt::format("{} port {}: {}", runner.name, options_.port, runner.failure));
      refused = refused && runner.failure == explain(asio::error::connection_refused);
    }
    auto error = unavailable_error(fmt::format("{}", fmt::join(failures, "; ")));
    if (refused) error.system_errno = ECONNREFUSED;
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
  tcp::resolver resolver_;
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
