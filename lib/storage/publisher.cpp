#include "storage/publisher.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>

#include "storage/folder_watch.hpp"
#include "storage/publish_file.hpp"

namespace taas::storage {
namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

/// A staged file that is not published yet.
struct Examined {
  Publication publication;
  StagedFile::Writers writers;
};

}  // namespace

struct Publisher::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, PublisherOptions chosen) : io(loop), options(std::move(chosen)), watch_later(loop) {}

  void start_watching() {
    auto started =
        FolderWatch::start(io, options.staging, [this](const std::vector<FoundFile>& found) { consider(found); });
    if (started) {
      watch = std::move(*started);
    } else if (options.on_error) {
      auto error = started.error();
      error.message += "; output appears only when the run ends";
      options.on_error(error);
    }
  }

  /// Files that the watch told of: those that are whole now are published.
  void consider(const std::vector<FoundFile>& found) {
    std::vector<Publication> whole;
    for (const auto& file : found) {
      if (is_temporary_name(file.name)) continue;
      auto found_now = examine(file.name);
      if (!found_now) continue;
      using Writers = StagedFile::Writers;
      bool unwritten = found_now->writers == Writers::kNone || (found_now->writers == Writers::kUnknown && file.closed);
      if (unwritten) whole.push_back(std::move(found_now->publication));
    }
    // Asked after the files were looked at: were one of them closed by a dying process, that would be seen now.
    if (whole.empty() || (options.writers_alive && !options.writers_alive())) return;
    for (auto& publication : whole) enqueue(std::move(publication));
  }

  /// What there is to publish under this name; nothing when that is published already, or not to be.
  std::optional<Examined> examine(const std::string& name) {
    Examined found{{options.staging, options.files, name, {}, false, at_end}, StagedFile::Writers::kNone};
    auto path = options.staging + "/" + name;
    if (auto file = StagedFile::open(path)) {
      found.publication.seen = file->state();
      found.writers = file->writers();
    } else if (auto link = link_state(path)) {
      found.publication.seen = *link;
      found.publication.link = true;
    } else {
      auto reason = file.error().system_errno;
      bool no_file = reason == ENOENT || reason == EINVAL || reason == ENXIO;  // gone, or a socket and the like
      if (!no_file) fail(name, file.error());
      return std::nullopt;
    }
    if (is_known(published, found.publication) || is_known(torn, found.publication)) return std::nullopt;
    return found;
  }

  static bool is_known(const std::map<std::string, FileState>& states, const Publication& publication) {
    auto known = states.find(publication.name);
    return known != states.end() && known->second == publication.seen;
  }

  /// One place in the queue for a name, with its newest content.
  void enqueue(Publication publication) {
    auto name = publication.name;
    if (waiting.insert_or_assign(name, std::move(publication)).second) order.push_back(name);
    pump();
  }

  void pump() {
    if (busy) return;
    if (order.empty()) {
      if (when_idle) std::exchange(when_idle, nullptr)();
      return;
    }
    auto publication = std::move(waiting.extract(order.front()).mapped());
    order.pop_front();
    run_on_thread([publication] { return publish_file(publication); },
                  [publication](State& self, const Result<Outcome>& result) { self.finish(publication, result); });
  }

  template <class Work, class Then>
  void run_on_thread(Work work, Then then) {
    busy = true;
    if (!thread) thread.emplace(1);
    // The guard keeps the loop running until the result has come back to it.
    asio::post(*thread, [weak = weak_from_this(), work, then, guard = asio::make_work_guard(io)] {
      auto result = work();
      asio::post(guard.get_executor(), [weak, then, result = std::move(result)] {
        auto self = weak.lock();
        if (!self) return;
        self->busy = false;
        then(*self, result);
        self->pump();
      });
    });
  }

  void finish(const Publication& publication, const Result<Outcome>& result) {
    const auto& name = publication.name;
    errors.erase(name);
    if (!result) return fail(name, result.error());
    if (*result == Outcome::kPublished) {
      published.insert_or_assign(name, publication.seen);
      torn.erase(name);
    } else if (*result == Outcome::kChanged && at_end) {
      if (auto again = examine(name)) enqueue(std::move(again->publication));
    } else if (*result == Outcome::kChanged) {
      consider({{name}});
    }
  }

  void fail(const std::string& name, const Error& error) {
    errors.insert_or_assign(name, error.message);
    if (options.on_error) options.on_error(error);
  }

  void publish_rest() {
    errors.clear();  // everything that failed before is tried again
    for (const auto& name : files_below(options.staging)) {
      if (auto found = examine(name)) enqueue(std::move(found->publication));
    }
  }

  void finish_settling(const std::function<void(std::string)>& on_done) {
    if (errors.empty()) {
      std::error_code ignored;
      auto is_gone = [&](const auto& file) {
        return !fs::exists(fs::symlink_status(options.staging + "/" + file.first));
      };
      std::erase_if(torn, is_gone);
      if (torn.empty()) fs::remove_all(options.staging, ignored);
      return on_done("");
    }
    auto others = errors.size() - 1;
    on_done(errors.begin()->second + (others == 0 ? "" : fmt::format(" (and {} more)", others)));
  }

  /// Marks what is staged and not published; returns the names that a user would miss.
  std::vector<std::string> mark_torn() {
    std::vector<std::string> missing;
    for (const auto& name : files_below(options.staging)) {
      auto found = examine(name);
      if (!found) continue;
      torn.insert_or_assign(name, found->publication.seen);
      if (!is_temporary_name(name)) missing.push_back(name);
    }
    return missing;
  }

  asio::io_context& io;
  PublisherOptions options;
  asio::steady_timer watch_later;
  std::unique_ptr<FolderWatch> watch;
  std::map<std::string, Publication> waiting;  // by name
  std::deque<std::string> order;               // of waiting
  bool busy = false;                           // the thread has work
  bool at_end = false;
  std::map<std::string, FileState> published;  // the newest content that is published, by name
  std::map<std::string, FileState> torn;       // perhaps unfinished: left by ranks that ended badly
  std::map<std::string, std::string> errors;   // what could not be published, by name
  std::function<void()> when_idle;
  std::optional<asio::thread_pool> thread;  // last: its destruction waits for the copy under way
};

std::unique_ptr<Publisher> Publisher::start(asio::io_context& io, PublisherOptions options) {
  auto state = std::make_shared<State>(io, std::move(options));
  if (state->options.watch_after.count() == 0) {
    state->start_watching();
  } else {
    state->watch_later.expires_after(state->options.watch_after);
    state->watch_later.async_wait([weak = std::weak_ptr(state)](const boost::system::error_code& cancelled) {
      if (auto self = weak.lock(); self && !cancelled && !self->at_end) self->start_watching();
    });
  }
  return std::unique_ptr<Publisher>(new Publisher(std::move(state)));
}

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}

Publisher::~Publisher() = default;

void Publisher::settle(std::function<void(std::string)> on_done) {
  auto* state = state_.get();
  state->watch.reset();
  state->watch_later.cancel();
  state->at_end = true;
  state->when_idle = [state, on_done = std::move(on_done)] {
    state->publish_rest();
    state->when_idle = [state, on_done] {
      if (state->published.empty()) return state->finish_settling(on_done);  // nothing of ours is there to be flushed
      state->run_on_thread([files = state->options.files] { return flush_place(files); },
                           [on_done](State& self, const Result<>& flushed) {
                             if (!flushed) self.fail("", flushed.error());
                             self.finish_settling(on_done);
                           });
    };
    state->pump();
  };
  asio::post(state->io, [weak = state_->weak_from_this()] {
    if (auto self = weak.lock()) self->pump();
  });
}

void Publisher::abandon(std::function<void(std::vector<std::string>)> on_done) {
  auto* state = state_.get();
  state->when_idle = [state, on_done = std::move(on_done)] { on_done(state->mark_torn()); };
  asio::post(state->io, [weak = state_->weak_from_this()] {
    if (auto self = weak.lock()) self->pump();
  });
}

std::size_t Publisher::published() const { return state_->published.size(); }

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
