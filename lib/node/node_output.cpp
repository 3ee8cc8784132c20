#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "node/node_state.hpp"

namespace taas::node {
namespace {

constexpr auto kWatchAfter = std::chrono::milliseconds(100);  // no rank has written anything sooner

}  // namespace

void Node::State::take_duty(const run::OutputDuty& duty) {
  if (!duty.publishes) return;
  auto files = folder().path() + "/" + duty.folder;
  publisher ? publisher->publish_to(files) : watch_output(files);
  if (duty.delivers && !delivery) deliver_output();
}

void Node::State::watch_output(const std::string& files) {
  storage::PublisherOptions publishing;
  publishing.staging = folder().staging();
  publishing.files = files;
  publishing.writers_alive = [this] { return writers.all_alive(); };
  publishing.watch_after = kWatchAfter;
  publishing.on_error = [this](const Error& error) { remark(error.message); };
  publishing.on_published = [this](const std::string& name) {
    if (delivery) delivery->add(name);
  };
  publisher = storage::Publisher::start(io, std::move(publishing));
}

/// A copy on this machine comes first: rank programs are not held up by a slow network, and what cannot be delivered is
/// whole where the user is told to look for it.
void Node::State::deliver_output() {
  DeliveryOptions delivering;
  delivering.files = folder().files();
  delivering.send = options.send_file;
  delivering.on_failure = [this](const std::string& why) {
    remark(fmt::format("a file of {} did not come through, and is tried again at the end: {}", options.machine.hostname,
                       why));
  };
  delivery = std::make_unique<Delivery>(io, std::move(delivering));
}

void Node::link_is_new() {
  state_->outbox.begin_anew();
  if (state_->publisher) state_->publisher->abandon([](const std::vector<std::string>&) {});
  if (state_->delivery) state_->delivery->begin_anew();
}

/// Files whose writer died stay unpublished; the next generation may write them again.
void Node::State::perform(const run::Abandon& /*unused*/) {
  if (publisher) publisher->abandon([](const std::vector<std::string>&) {});
}

void Node::State::perform(const run::Settle& request) {
  source.reset();  // no generation follows: its memory is given back while output is put on disk
  if (!publisher) return say_settled("");
  settle_output(request.publish, [this](const std::string& unpublished) {
    if (!delivery) return say_settled(unpublished);
    delivery->settle([this, unpublished](const std::string& undelivered) {
      say_settled(unpublished.empty() ? undelivered : unpublished);
    });
  });
}

void Node::State::say_settled(const std::string& error) {
  auto files = static_cast<int>(publisher ? publisher->published() : 0);
  // Log files are whole then, too.
  disk.after([=, this] { outbox.say_last(run::OutputSettled{error, steady_now(), files}); });
}

void Node::State::settle_output(bool publish, std::function<void(std::string error)> on_done) {
  if (publish) return publisher->settle(std::move(on_done));
  publisher->abandon([this, on_done = std::move(on_done)](const std::vector<std::string>& unpublished) {
    if (!unpublished.empty()) {
      remark(fmt::format("not published, since their writer did not end well: {}", fmt::join(unpublished, ", ")));
    }
    on_done("");
  });
}

}  // namespace taas::node
