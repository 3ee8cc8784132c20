#include "launch/downlink.hpp"

#include "run/messages/file_frames.hpp"
#include "run/messages/wire.hpp"

namespace taas::launch {
namespace {

/// Destroying it closes the link once all that was told has gone out.
class LinkedDownlink : public Downlink {
 public:
  explicit LinkedDownlink(std::unique_ptr<net::Link> link) : link_(std::move(link)) {}
  ~LinkedDownlink() override { link_->close(); }

  void tell(const run::CoordinatorMessage& message) override { link_->send(run::encode(message)); }

  void listen(CoordinatorLoop& run, run::AgentId agent) {
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

void admit(std::unique_ptr<net::Link> link, CoordinatorLoop& run) {
  auto downlink = std::make_unique<LinkedDownlink>(std::move(link));
  auto* raw = downlink.get();
  raw->listen(run, run.add(std::move(downlink)));
}

}  // namespace taas::launch
