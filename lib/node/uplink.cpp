#include "node/uplink.hpp"

#include <fmt/ranges.h>

#include <cerrno>

#include "base/log/log.hpp"
#include "net/frames.hpp"
#include "run/messages/wire.hpp"

namespace taas::node {
namespace {

/// A text that is too long to be sent must not look like a lost node.
std::string frame_of(const run::AgentMessage& message) {
  auto frame = run::encode(message);
  return frame.size() <= net::kMostFrameBytes ? frame : run::encode(run::shorten(message));
}

class LinkedUplink : public Uplink {
 public:
  LinkedUplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent)
      : io_(io), options_(std::move(options)), agent_(agent) {}

  void connect() override {
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

  void send_file(std::string frame) override {
    if (link_) link_->send(std::move(frame));
  }

  void close(std::function<void()> on_closed) override {
    connecting_.reset();
    if (!link_) return on_closed();
    link_->set_callbacks({nullptr, [on_closed = std::move(on_closed)](const std::string&, bool) { on_closed(); }});
    link_->close();
  }

 private:
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
};

}  // namespace

std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent) {
  return std::make_unique<LinkedUplink>(io, std::move(options), agent);
}

}  // namespace taas::node
