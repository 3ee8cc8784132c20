#include "node/uplink.hpp"

#include <fmt/ranges.h>

#include <cerrno>

#include "base/log/log.hpp"
#include "base/timer.hpp"
#include "net/frames.hpp"
#include "run/messages/wire.hpp"

namespace taas::node {
namespace {

constexpr auto kAskPatience = std::chrono::seconds(2);  // TCP tries again after one

/// A text that is too long to be sent must not look like a lost node.
std::string frame_of(const run::AgentMessage& message) {
  auto frame = run::encode(message);
  return frame.size() <= net::kMostFrameBytes ? frame : run::encode(run::shorten(message));
}

class LinkedUplink : public Uplink {
 public:
  LinkedUplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent)
      : io_(io), options_(std::move(options)), agent_(agent), ask_patience_(io, [this] { stop_asking(); }) {}

  void connect() override {
    stop_asking();
    link_.reset();
    connecting_ = net::connect(io_, options_, [this](Result<std::unique_ptr<net::Link>> link) {
      if (!link) {
        log::info(LogPart::kAgent, "the coordinator is not reached: {}", link.error().message);
        bool refused = link.error().system_errno == ECONNREFUSED;
        bool nameless = link.error().system_errno == EADDRNOTAVAIL;
        auto name = nameless ? fmt::format("{}", fmt::join(options_.addresses, ", ")) : std::string();
        return agent_.feed(run::LinkDown{link.error().message, steady_now(), refused, std::move(name)});
      }
      options_.on_found = nullptr;
      link_ = std::move(*link);
      log::info(LogPart::kAgent, "linked with the coordinator at {}", link_->peer_address());
      listen();
      agent_.feed(run::LinkUp{steady_now()});
    });
  }

  void send(const run::AgentMessage& message) override {
    if (link_) link_->send(frame_of(message));
  }

  void ask(const run::Heartbeat& heartbeat) override {
    if (!link_ || asking_ || aside_) return;
    auto options = options_;
    options.addresses = {link_->peer_address()};
    options.patience = kAskPatience;
    asking_ = net::connect(io_, std::move(options), [this, heartbeat](Result<std::unique_ptr<net::Link>> link) {
      asking_.reset();
      if (!link) return log::info(LogPart::kAgent, "the coordinator cannot be asked: {}", link.error().message);
      aside_ = std::move(*link);
      aside_->set_callbacks(
          {[this](std::string_view frame) { hear_aside(frame); }, [this](const std::string&, bool) { stop_asking(); }});
      aside_->send(frame_of(run::Heartbeat{heartbeat.number, steady_now(), heartbeat.instance}));
      ask_patience_.set(steady_now() + kAskPatience);
    });
  }

  void send_file(std::string frame) override {
    if (link_) link_->send(std::move(frame));
  }

  void close(std::function<void()> on_closed) override {
    connecting_.reset();
    stop_asking();
    if (!link_) return on_closed();
    link_->set_callbacks({nullptr, [on_closed = std::move(on_closed)](const std::string&, bool) { on_closed(); }});
    link_->close();
  }

 private:
  void stop_asking() {
    ask_patience_.clear();
    asking_.reset();
    aside_.reset();
  }

  /// What is not understood is left to the link to complain about.
  void hear_aside(std::string_view frame) {
    auto message = run::decode_coordinator_message(frame);
    stop_asking();
    if (message) agent_.feed(run::CoordinatorSaid{std::move(*message), steady_now(), true});
  }

  void listen() {
    net::Link::Callbacks calls;
    calls.on_frame = [this](std::string_view frame) {
      auto message = run::decode_coordinator_message(frame);
      if (!message) return lose(message.error().message);
      agent_.feed(run::CoordinatorSaid{std::move(*message), steady_now()});
    };
    calls.on_closed = [this](const std::string& reason, bool) { lose(reason); };
    link_->set_callbacks(std::move(calls));
  }

  void lose(const std::string& reason) {
    link_.reset();
    log::warning(LogPart::kAgent, "the link with the coordinator is lost: {}", reason);
    agent_.feed(run::LinkDown{reason, steady_now()});
  }

  boost::asio::io_context& io_;
  net::ConnectOptions options_;
  AgentLoop& agent_;
  std::unique_ptr<net::Connecting> connecting_;
  std::unique_ptr<net::Link> link_;
  std::unique_ptr<net::Connecting> asking_;
  std::unique_ptr<net::Link> aside_;  // beside the link, while that is silent
  Timer ask_patience_;
};

}  // namespace

std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent) {
  return std::make_unique<LinkedUplink>(io, std::move(options), agent);
}

}  // namespace taas::node
