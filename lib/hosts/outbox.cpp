#include "hosts/outbox.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace taas::hosts {
namespace {

constexpr std::size_t kMostLines = 256;  // in one message

}  // namespace

struct Outbox::State {
  boost::asio::io_context& io;
  std::function<void(run::AgentMessage)> say;
  std::vector<run::OutputText> lines;

  void flush() {
    if (!lines.empty() && say) say(run::Output{std::exchange(lines, {})});
  }
};

Outbox::Outbox(boost::asio::io_context& io, std::function<void(run::AgentMessage)> say)
    : state_(std::make_shared<State>(State{io, std::move(say), {}})) {}

Outbox::~Outbox() { state_->say = nullptr; }

void Outbox::add(run::OutputText line) {
  auto& lines = state_->lines;
  lines.push_back(std::move(line));
  if (lines.size() == kMostLines) return state_->flush();
  if (lines.size() == 1) boost::asio::post(state_->io, [state = state_] { state->flush(); });
}

void Outbox::say(run::AgentMessage message) {
  state_->flush();
  state_->say(std::move(message));
}

}  // namespace taas::hosts
