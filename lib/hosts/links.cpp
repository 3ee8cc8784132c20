#include "hosts/links.hpp"

#include <cerrno>

#include "net/frames.hpp"
#include "run/file_frames.hpp"
#include "run/shorten.hpp"
#include "run/wire.hpp"

namespace taas::hosts {
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
        bool refused = link.error().system_errno == ECONNREFUSED;
        return agent_.feed(run::LinkDown{link.error().message, steady_now(), refused});
      }
      link_ = std::move(*link);
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
    agent_.feed(run::LinkDown{reason, steady_now(), false});
  }

  boost::asio::io_context& io_;
  net::ConnectOptions options_;
  AgentLoop& agent_;
  std::unique_ptr<net::Connecting> connecting_;
  std::unique_ptr<net::Link> link_;
};

/// Destroying it closes the link once all that was told has gone out.
class LinkedDownlink : public Downlink {
 public:
  explicit LinkedDownlink(std::unique_ptr<net::Link> link) : link_(std::move(link)) {}
  ~LinkedDownlink() override { link_->close(); }

  void tell(const run::CoordinatorMessage& message) override { link_->send(run::encode(message)); }

  void listen(RunLoop& run, run::AgentId agent) {
    net::Link::Callbacks calls;
    calls.on_frame = [&run, agent](std::string_view frame) {
      if (run::is_file_frame(frame)) return run.hear_file(agent, frame);
      auto message = run::decode_agent_message(frame);
      if (!message) return run.leave(agent, message.error().message, false);
      run.hear(agent, std::move(*message));
    };
    calls.on_closed = [&run, agent](const std::string& reason, bool by_peer) { run.leave(agent, reason, by_peer); };
    link_->set_callbacks(std::move(calls));
  }

 private:
  std::unique_ptr<net::Link> link_;
};

}  // namespace

std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent) {
  return std::make_unique<LinkedUplink>(io, std::move(options), agent);
}

void admit(std::unique_ptr<net::Link> link, RunLoop& run) {
  auto downlink = std::make_unique<LinkedDownlink>(std::move(link));
  auto* raw = downlink.get();
  raw->listen(run, run.add(std::move(downlink)));
}

}  // namespace taas::hosts
