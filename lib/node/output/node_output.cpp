#include "node/output/node_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace taas::node {
namespace {

constexpr auto kWatchAfter = std::chrono::milliseconds(100);  // no rank has written anything sooner

}  // namespace

void NodeOutput::take(const run::OutputDuty& duty) {
  if (!duty.publishes) return;
  publish_to(folder_.path() + "/" + duty.folder);
  if (duty.delivers && !delivery_) deliver();
}

void NodeOutput::publish_to(const std::string& files) {
  if (publisher_) return publisher_->publish_to(files);
  storage::PublisherOptions publishing;
  publishing.staging = folder_.staging();
  publishing.files = files;
  publishing.writers_alive = options_.writers_alive;
  publishing.watch_after = kWatchAfter;
  publishing.on_error = [this](const Error& error) { options_.remark(error.message); };
  publishing.on_published = [this](const std::string& name) {
    if (delivery_) delivery_->add(name);
  };
  publisher_ = storage::Publisher::start(io_, std::move(publishing));
}

/// A copy on this machine comes first: rank programs are not held up by a slow network, and what cannot be delivered is
/// whole where the user is told to look for it.
void NodeOutput::deliver() {
  DeliveryOptions delivering;
  delivering.files = folder_.files();
  delivering.send = options_.send_file;
  delivering.on_failure = [this](const std::string& why) {
    options_.remark(
        fmt::format("a file of {} did not come through, and is tried again at the end: {}", options_.hostname, why));
  };
  delivery_ = std::make_unique<Delivery>(io_, std::move(delivering));
}

void NodeOutput::hear(const run::FileProgress& progress) {
  if (delivery_) delivery_->hear(progress);
}

void NodeOutput::hear(const run::FileStored& stored) {
  if (delivery_) delivery_->hear(stored);
}

void NodeOutput::begin_anew() {
  abandon();
  if (delivery_) delivery_->begin_anew();
}

void NodeOutput::abandon() {
  if (publisher_) publisher_->abandon([](const std::vector<std::string>&) {});
}

void NodeOutput::settle(bool publish, std::function<void(const std::string& error)> on_done) {
  if (!publisher_) return on_done("");
  settle_publisher(publish, [this, on_done = std::move(on_done)](const std::string& unpublished) {
    if (!delivery_) return on_done(unpublished);
    delivery_->settle([on_done, unpublished](const std::string& undelivered) {
      on_done(unpublished.empty() ? undelivered : unpublished);
    });
  });
}

void NodeOutput::settle_publisher(bool publish, std::function<void(std::string error)> on_done) {
  if (publish) return publisher_->settle(std::move(on_done));
  publisher_->abandon([this, on_done = std::move(on_done)](const std::vector<std::string>& unpublished) {
    if (!unpublished.empty()) {
      options_.remark(
          fmt::format("not published, since their writer did not end well: {}", fmt::join(unpublished, ", ")));
    }
    on_done("");
  });
}

}  // namespace taas::node
