#include "node/output/outbox.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <utility>

#include "base/timer.hpp"

namespace taas::node {
namespace {

// In one message.
constexpr std::size_t kMostLines = 256;
constexpr std::size_t kMostBytes = 16 * 1024;  // JSON may need six for one of them

// On their way: a tenth of a second on a network of 5 Mbit/s, and more than a console takes of any other.
constexpr std::size_t kWindow = 64 * 1024;
constexpr std::size_t kWindowInProcess = 1024 * 1024;

// Of lines that wait.
constexpr std::size_t kCrowded = 256 * 1024;
constexpr std::size_t kRoom = 64 * 1024;

constexpr auto kPatience = std::chrono::seconds(5);  // at the end, with a console that takes nothing

std::size_t cost_of(const run::OutputText& line) {
  return line.text.size() + (line.raw ? line.raw->size() : 0) + sizeof line;
}

}  // namespace

struct Outbox::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& loop, OutboxOptions given)
      : io(loop),
        options(std::move(given)),
        window(options.in_process ? kWindowInProcess : kWindow),
        patience(loop, [this] { drop(); }) {}

  template <class Task>
  void later(Task task) {
    boost::asio::post(io, [weak = weak_from_this(), task] {
      if (auto self = weak.lock()) task(*self);
    });
  }

  void flush() {
    while (!waiting.empty() && (on_their_way == 0 || on_their_way + kMostBytes <= window)) send_some();
    note_crowd();
    end_if_all_is_said();
  }

  void send_some() {
    run::Output output;
    std::size_t bytes = 0;
    while (!waiting.empty() && output.lines.size() < kMostLines && bytes < kMostBytes) {
      bytes += cost_of(waiting.front());
      output.lines.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    waiting_bytes -= bytes;
    on_their_way += bytes;
    sent.push_back(bytes);
    options.say(std::move(output));
  }

  void note_crowd() {
    bool now = crowded ? waiting_bytes > kRoom : waiting_bytes > kCrowded;
    if (now == crowded) return;
    crowded = now;
    later([](State& self) {
      if (std::exchange(self.told_crowded, self.crowded) != self.crowded) self.options.on_crowded(self.crowded);
    });
  }

  void end_if_all_is_said() {
    if (!last || !waiting.empty() || !sent.empty()) return;
    patience.clear();
    options.say(*std::exchange(last, std::nullopt));
  }

  /// Their log files have them.
  void drop() {
    auto count = waiting.size();
    forget();
    if (count > 0) {
      options.say(
          run::Remark{fmt::format("{} lines of output were not shown: the console did not take them; the log "
                                  "files have them",
                                  count)});
    }
    flush();
  }

  void forget() {
    waiting.clear();
    sent.clear();
    waiting_bytes = on_their_way = 0;
  }

  boost::asio::io_context& io;
  OutboxOptions options;
  std::deque<run::OutputText> waiting;
  std::size_t waiting_bytes = 0;
  std::deque<std::size_t> sent;  // bytes of each message that is on its way
  std::size_t on_their_way = 0;  // bytes
  std::size_t window;
  bool flushing = false;  // soon
  bool crowded = false;
  bool told_crowded = false;
  std::optional<run::AgentMessage> last;
  Timer patience;
};

Outbox::Outbox(boost::asio::io_context& io, OutboxOptions options)
    : state_(std::make_shared<State>(io, std::move(options))) {}

Outbox::~Outbox() = default;

void Outbox::add(run::OutputText line) {
  state_->waiting_bytes += cost_of(line);
  state_->waiting.push_back(std::move(line));
  if (std::exchange(state_->flushing, true)) return;
  state_->later([](State& self) {
    self.flushing = false;
    self.flush();
  });
}

void Outbox::say(run::AgentMessage message) {
  state_->flush();
  state_->options.say(std::move(message));
}

void Outbox::say_last(run::AgentMessage message) {
  state_->last = std::move(message);
  state_->patience.set(steady_now() + kPatience);
  state_->flush();
}

void Outbox::shown() {
  State& state = *state_;
  if (state.sent.empty()) return;  // of a former link
  state.on_their_way -= state.sent.front();
  state.sent.pop_front();
  if (state.last) state.patience.set(steady_now() + kPatience);
  state.flush();
}

void Outbox::begin_anew() {
  state_->forget();
  state_->flush();
}

}  // namespace taas::node
