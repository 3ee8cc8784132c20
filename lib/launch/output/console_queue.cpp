#include "launch/output/console_queue.hpp"

#include <boost/asio/post.hpp>
#include <deque>
#include <utility>

namespace taas::launch {
namespace {

constexpr std::size_t kLittle = 32;  // messages, of up to 16 KiB each

}  // namespace

struct ConsoleQueue::State : std::enable_shared_from_this<State> {
  struct Waiting {
    run::AgentId from;
    run::Output output;
  };

  State(boost::asio::io_context& loop, Callbacks given) : io(loop), callbacks(std::move(given)) {}

  void go_on() {
    if (held || scheduled || waiting.empty()) return;
    scheduled = true;
    boost::asio::post(io, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      self->scheduled = false;
      if (!self->held && !self->waiting.empty()) self->show_next();
      self->go_on();
    });
  }

  void show_next() {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    callbacks.show(next.output);
    callbacks.on_shown(next.from);
  }

  boost::asio::io_context& io;
  Callbacks callbacks;
  std::deque<Waiting> waiting;
  bool held = false;
  bool scheduled = false;
};

ConsoleQueue::ConsoleQueue(boost::asio::io_context& io, Callbacks callbacks)
    : state_(std::make_shared<State>(io, std::move(callbacks))) {}

ConsoleQueue::~ConsoleQueue() = default;

void ConsoleQueue::add(run::AgentId from, run::Output output) {
  state_->waiting.push_back({from, std::move(output)});
  state_->go_on();
}

void ConsoleQueue::hold(bool hold) {
  state_->held = hold;
  state_->go_on();
}

void ConsoleQueue::keep_order() {
  if (state_->waiting.size() > kLittle) return;
  while (!state_->held && !state_->waiting.empty()) state_->show_next();
}

void ConsoleQueue::show_all() {
  while (!state_->waiting.empty()) state_->show_next();
}

}  // namespace taas::launch
