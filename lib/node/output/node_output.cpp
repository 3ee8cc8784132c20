#include "node/output/node_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "base/text.hpp"

namespace taas::node {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostNamed = 5;
constexpr auto kWatchAfter = std::chrono::milliseconds(100);  // no rank has written anything sooner

}  // namespace

void NodeOutput::take(const run::OutputDuty& duty, Generation generation) {
  if (!duty.publishes) return;
  auto files = folder_.held().make_folder(duty.folder);
  if (!files) return options_.remark(files.error().message + ": nothing is published");
  publish_to(std::move(*files), generation);
  others_write_ = duty.asks;
  publisher_->share({duty.asks, duty.alone});
  if (duty.delivers && !delivery_) deliver();
}

void NodeOutput::publish_to(HeldFolder files, Generation generation) {
  if (publisher_) return publisher_->publish_to(std::move(files));
  storage::PublisherOptions publishing;
  publishing.place = folder_.held();
  publishing.files = std::move(files);
  publishing.writers = options_.writers;
  publishing.inherits = generation.value > 0;
  publishing.ask = [this](std::uint64_t number) { ask(number); };
  publishing.watch_after = kWatchAfter;
  publishing.on_error = [this](const Error& error) { options_.remark(error.message); };
  publishing.on_published = [this](const std::string& name) {
    if (delivery_) delivery_->add(name);
  };
  publisher_ = storage::Publisher::start(io_, std::move(publishing));
}

/// What a rank has just printed is in a pipe at first: the loop looks there between the two steps.
void NodeOutput::ask(std::uint64_t number) {
  asio::post(io_, [this, number] {
    asio::post(io_, [this, number] {
      const bool well = options_.writers->look(steady_now()) == storage::WritersState::kWell;
      if (well && others_write_) return options_.ask_others(number);
      publisher_->confirm(number, well);
    });
  });
}

void NodeOutput::stopping(bool by_kill, const std::vector<Process>& processes) {
  if (!publisher_) return;
  std::vector<int> pids;
  for (const auto& process : processes) pids.push_back(process.pid);
  const auto staging = folder_.held().folder(".staging");
  publisher_->stop({by_kill, staging ? storage::names_being_written(pids, *staging) : std::map<std::string, int>()});
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

void NodeOutput::hear(const run::WritersAnswer& answer) {
  if (publisher_) publisher_->confirm(answer.number, answer.well);
}

void NodeOutput::begin_anew() {
  abandon();
  if (delivery_) delivery_->begin_anew();
}

void NodeOutput::abandon() {
  if (publisher_) publisher_->abandon([this](const auto& doubtful) { name_doubtful(doubtful); });
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
  if (!publish) {
    return publisher_->abandon([this, on_done = std::move(on_done)](const auto& doubtful) {
      name_doubtful(doubtful);
      on_done("");
    });
  }
  publisher_->settle([this, on_done = std::move(on_done)](std::string error, const auto& doubtful) {
    name_doubtful(doubtful);
    on_done(std::move(error));
  });
}

void NodeOutput::name_doubtful(const std::vector<storage::Doubtful>& doubtful) {
  if (doubtful.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, has_earlier] : doubtful) {
    if (names.size() == kMostNamed) break;
    names.push_back(printable(name) + (has_earlier ? " (published: an earlier version)" : ""));
  }
  const auto more = doubtful.size() - names.size();
  const bool one = doubtful.size() == 1;
  options_.remark(fmt::format("not published, since nobody knows whether {} whole: {}{}; {} in {}",
                              one ? "it is" : "they are", fmt::join(names, ", "),
                              more > 0 ? fmt::format(" and {} more", more) : "", one ? "it stays" : "they stay",
                              folder_.staging()));
}

}  // namespace taas::node
