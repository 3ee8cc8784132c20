#include "hosts/outbox.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace taas::hosts {
namespace {

// In one message.
constexpr std::size_t kMostLines = 256;
constexpr std::size_t kMostBytes = 512 * 1024;  // JSON may need six for one of them

}  // namespace

struct Outbox::State {
  boost::asio::io_context& io;
  std::function<void(run::AgentMessage)> say;
  std::vector<run::OutputText> lines;
  std::size_t bytes = 0;

  void flush() {
    bytes = 0;
    if (!lines.empty() && say) say(run::Output{std::exchange(lines, {})});
  }
};

Outbox::Outbox(boost::asio::io_context& io, std::function<void(run::AgentMessage)> say)
    : state_(std::make_shared<State>(State{io, std::move(say), {}})) {}

Outbox::~Outbox() { state_->say = nullptr; }

void Outbox::add(run::OutputText line) {
  auto& lines = state_->lines;
  state_->bytes += line.text.size() + (line.raw ? line.raw->size() : 0);
  lines.push_back(std::move(line));
  if (lines.size() == kMostLines || state_->bytes >= kMostBytes) return state_->flush();
  if (lines.size() == 1) boost::asio::post(state_->io, [state = state_] { state->flush(); });
}

void Outbox::say(run::AgentMessage message) {
  state_->flush();
  state_->say(std::move(message));
}

}  // namespace taas::hosts
