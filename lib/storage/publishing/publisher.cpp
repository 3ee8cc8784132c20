#include "storage/publishing/publisher.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/quiet_thread.hpp"
#include "base/timer.hpp"
#include "storage/publishing/publishing.hpp"

namespace taas::storage {
namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr auto kPauseOfLoop = std::chrono::milliseconds(5);

/// Runs the work, and brings what it tells to the event loop.
struct Publisher::Thread {
  Thread(asio::io_context& loop, PublisherOptions options) : io(loop) {
    options.on_error = to_loop(std::move(options.on_error));
    options.on_published = to_loop(std::move(options.on_published));
    options.ask = to_loop(std::move(options.ask));
    auto tell = options.on_error;
    work.emplace(own, std::move(options), to_loop(std::function<void()>([this] { ++published; })));
    work->start_watching();  // before this returns, and so before anything is written
    auto begun = begin();
    if (!begun && tell) tell(Error(begun.error()).with("output appears only when the run ends"));
  }

  ~Thread() {
    own.stop();
    if (thread.joinable()) thread.join();
    *here = false;
  }

  /// Tried again with each wish, where the system has started none before.
  Result<> begin() {
    if (thread.joinable()) return {};
    return begin_quietly(thread, [this] { own.run(); });
  }

  /// The event loop does it, bit by bit between its other work, where the system starts no thread.
  void begin_or_do_here() {
    if (here_timer || begin()) return;
    here_timer.emplace(io, [this] { do_here(); });
    do_here();
  }

  void do_here() {
    own.poll();
    here_timer->set(steady_now() + kPauseOfLoop);
  }

  /// The same function, called in the event loop as long as this is there.
  template <class... Arguments>
  std::function<void(Arguments...)> to_loop(std::function<void(Arguments...)> function) {
    if (!function) return function;
    return [&loop = io, still = here, function = std::move(function)](Arguments... arguments) {
      asio::post(loop, [still, function, arguments...] {
        if (*still) function(arguments...);
      });
    };
  }

  /// The event loop goes on until what is asked for has been done and told.
  template <class Ask>
  void ask(Ask ask) {
    asio::post(own, [this, ask = std::move(ask), guard = asio::make_work_guard(io)] { ask(*work, guard); });
  }

  asio::io_context& io;
  asio::io_context own{1};
  asio::executor_work_guard<asio::io_context::executor_type> own_goes_on{own.get_executor()};
  std::size_t published = 0;
  std::shared_ptr<bool> here = std::make_shared<bool>(true);  // in the event loop only
  std::optional<Publishing> work;                             // on the thread only
  std::thread thread;
  std::optional<Timer> here_timer;
};

std::unique_ptr<Publisher> Publisher::start(asio::io_context& io, PublisherOptions options) {
  return std::unique_ptr<Publisher>(new Publisher(std::make_unique<Thread>(io, std::move(options))));
}

Publisher::Publisher(std::unique_ptr<Thread> thread) : thread_(std::move(thread)) {}

Publisher::~Publisher() = default;

void Publisher::publish_to(HeldFolder files) {
  asio::post(thread_->own, [thread = thread_.get(), files = std::move(files)] { thread->work->publish_to(files); });
}

void Publisher::share(Sharing sharing) {
  asio::post(thread_->own, [thread = thread_.get(), sharing] { thread->work->share(sharing); });
}

void Publisher::confirm(std::uint64_t number, bool well) {
  asio::post(thread_->own, [=, thread = thread_.get()] { thread->work->confirm(number, well); });
}

void Publisher::stop(Stop stop) {
  thread_->work->stop(std::move(stop));
  asio::post(thread_->own, [thread = thread_.get()] { thread->work->catch_up_with_stops(); });
}

bool Publisher::has_seen_files() const { return thread_->work->has_seen_files(); }

void Publisher::settle(std::function<void(std::string, std::vector<Doubtful>)> on_done) {
  thread_->begin_or_do_here();
  thread_->ask([done = thread_->to_loop(std::move(on_done))](Publishing& work, auto guard) {
    work.settle([done, guard](std::string error, std::vector<Doubtful> doubtful) {
      done(std::move(error), std::move(doubtful));
    });
  });
}

void Publisher::abandon(std::function<void(std::vector<Doubtful>)> on_done) {
  thread_->begin_or_do_here();
  thread_->ask([done = thread_->to_loop(std::move(on_done))](Publishing& work, auto guard) {
    work.abandon([done, guard](std::vector<Doubtful> doubtful) { done(std::move(doubtful)); });
  });
}

std::size_t Publisher::published() const { return thread_->published; }

bool is_temporary_name(const std::string& name) {
  auto ends_with = [](const std::string& text, std::string_view end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  for (const auto& part : fs::path(name)) {
    auto text = part.string();
    if (text.front() == '.' || ends_with(text, ".tmp") || ends_with(text, ".part") ||
        text.find(".tmp.") != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace taas::storage
