#include "storage/publishing/publishing.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include "base/disk_thread.hpp"
#include "storage/publishing/failed_names.hpp"
#include "storage/publishing/folder_watch.hpp"
#include "storage/publishing/publish_file.hpp"
#include "storage/publishing/publish_queue.hpp"
#include "storage/publishing/staged_files.hpp"

namespace taas::storage {
namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

constexpr int kLooksAtClosed = 4;
constexpr auto kLookAgainAfter = std::chrono::milliseconds(20);
constexpr int kMostRounds = 20;  // at the end, for processes that are not the run's and write without end

/// A staged file that is not published yet.
struct Examined {
  Publication publication;
  StagedFile::Writers writers;
};

}  // namespace

struct Publishing::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, PublisherOptions chosen, std::function<void()> count)
      : io(loop), options(std::move(chosen)), on_name(std::move(count)), begin_to_watch(loop) {}

  void watch_later() {
    begin_to_watch.expires_after(options.watch_after);
    begin_to_watch.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
      if (auto self = weak.lock(); self && !cancelled && !self->at_end) self->start_watching();
    });
  }

  void settle(std::function<void(std::string)> on_done) {
    watch.reset();
    begin_to_watch.cancel();
    at_end = true;
    on_settled = std::move(on_done);
    when_idle = [this] { settle_round(); };
    pump();
  }

  void abandon(std::function<void(std::vector<std::string>)> on_done) {
    when_idle = [this, on_done = std::move(on_done)] { on_done(mark_torn()); };
    pump();
  }

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

  /// Files that the watch told of: those that are whole now are published. The kernel tells of a close a moment before
  /// the file counts as closed, so that one which still seems open then is looked at again.
  void consider(const std::vector<FoundFile>& found, int looks = kLooksAtClosed) {
    using Writers = StagedFile::Writers;
    std::vector<Publication> whole;
    std::vector<FoundFile> closing;
    for (const auto& file : found) {
      if (is_temporary_name(file.name)) continue;
      auto found_now = examine(file.name);
      if (!found_now) continue;
      bool unwritten = found_now->writers == Writers::kNone || (found_now->writers == Writers::kUnknown && file.closed);
      if (unwritten) whole.push_back(std::move(found_now->publication));
      if (!unwritten && file.closed) closing.push_back(file);
    }
    if (!closing.empty() && looks > 1) look_again(std::move(closing), looks - 1);
    // Asked after the files were looked at: were one of them closed by a dying process, that would be seen now.
    if (whole.empty() || (options.writers_alive && !options.writers_alive())) return;
    for (auto& publication : whole) enqueue(std::move(publication));
  }

  void look_again(std::vector<FoundFile> files, int looks) {
    auto soon = std::make_shared<asio::steady_timer>(io, kLookAgainAfter);
    soon->async_wait([weak = weak_from_this(), soon, files = std::move(files), looks](const auto& cancelled) {
      if (auto self = weak.lock(); self && !cancelled && !self->at_end) self->consider(files, looks);
    });
  }

  /// What there is to publish under this name; nothing when that is published already, or not to be.
  std::optional<Examined> examine(const std::string& name) {
    Examined found{{options.staging, options.files, name, {}, false, meaning_of_refusal(), at_end},
                   StagedFile::Writers::kNone};
    auto path = options.staging + "/" + name;
    if (auto file = StagedFile::open(path, meaning_of_refusal())) {
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

  /// Asked beside the staging folder, where no rank looks, when the first file is there.
  Refusal meaning_of_refusal() {
    if (!refusal) refusal = learn_refusal(fs::path(options.staging).parent_path().string());
    return *refusal;
  }

  static bool is_known(const std::map<std::string, FileState>& states, const Publication& publication) {
    auto known = states.find(publication.name);
    return known != states.end() && known->second == publication.seen;
  }

  void enqueue(Publication publication) {
    queue.add(std::move(publication));
    pump();
  }

  /// A name that was told twice before it was published is published once.
  void pump() {
    if (busy) return;
    while (auto next = queue.take()) {
      if (is_known(published, *next)) continue;
      return run_on_thread([next] { return publish_file(*next); },
                           [next](State& self, const Result<Outcome>& result) { self.finish(*next, result); });
    }
    if (when_idle) std::exchange(when_idle, nullptr)();
  }

  template <class Work, class Then>
  void run_on_thread(Work work, Then then) {
    busy = true;
    // The guard keeps the loop running until the result has come back to it.
    run_on(thread, [weak = weak_from_this(), work, then, guard = asio::make_work_guard(io)] {
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
    failures.remove(name);
    if (!result) return fail(name, result.error(), publication.seen);
    if (*result == Outcome::kPublished) {
      if (published.insert_or_assign(name, publication.seen).second) on_name();
      torn.erase(name);
      if (options.on_published) options.on_published(name);
    } else if (*result == Outcome::kChanged && !at_end) {
      consider({{name}});  // at the end, the next round finds it
    }
  }

  void fail(const std::string& name, const Error& error, const FileState& seen = {}) {
    if (failures.add(name, error, seen) && options.on_error) options.on_error(error);
  }

  /// What is staged and not published yet; what cannot be is among the failures.
  std::vector<Publication> find_unpublished() {
    std::vector<Publication> unpublished;
    auto staged = files_below(options.staging);
    for (const auto& [name, error] : staged.unread) fail(name, error);
    for (const auto& name : staged.names) {
      auto found = examine(name);
      if (!found) continue;
      if (found->writers == StagedFile::Writers::kOpen) {
        fail(name, unavailable_error("cannot publish " + name + ": a process still has it open for writing"));
      } else if (!failures.stays(name, found->publication.seen)) {
        unpublished.push_back(std::move(found->publication));
      }
    }
    return unpublished;
  }

  /// Publishes what is there, again and again until nothing new has come meanwhile, nor while the staged files whose
  /// content is published were removed.
  void settle_round() {
    if (options.before_look) options.before_look();
    if (rounds == 0) failures.clear();  // what failed while the run went on is tried again
    failures.begin_round();
    auto unpublished = find_unpublished();
    if (unpublished.empty()) return cleared ? conclude() : clear_up();
    if (++rounds > kMostRounds) return give_up(unpublished);
    cleared = false;
    when_idle = [this] { settle_round(); };
    for (auto& publication : unpublished) enqueue(std::move(publication));
  }

  void give_up(const std::vector<Publication>& unpublished) {
    for (const auto& publication : unpublished) {
      fail(publication.name,
           unavailable_error("cannot publish " + publication.name + ": a process that is not the run's still writes"));
    }
    conclude();
  }

  void clear_up() {
    cleared = true;
    std::erase_if(
        torn, [&](const auto& file) { return !fs::exists(fs::symlink_status(options.staging + "/" + file.first)); });
    bool keep = !failures.empty() || !torn.empty();
    auto meaning = refusal.value_or(Refusal::kMeansNothing);  // never asked for: there is no file
    auto clear = [keep, meaning, staging = options.staging, known = published] {
      if (!keep) remove_published(staging, known, meaning);
    };
    if (published.empty()) {  // nothing of ours is there to be flushed
      clear();
      return settle_round();
    }
    auto work = [files = options.files, clear]() -> Result<> {
      if (auto flushed = flush_place(files); !flushed) return flushed;
      clear();
      return {};
    };
    run_on_thread(work, [](State& self, const Result<>& flushed) {
      if (flushed) return self.settle_round();
      self.fail("", flushed.error());
      self.conclude();
    });
  }

  void conclude() {
    auto done = std::exchange(on_settled, nullptr);
    done(failures.empty() ? "" : fmt::format("{}; it stays in {}", failures.message(), options.staging));
  }

  /// Marks what is staged and not published; returns the names that a user would miss.
  std::vector<std::string> mark_torn() {
    std::vector<std::string> missing;
    for (const auto& name : files_below(options.staging).names) {
      auto found = examine(name);
      if (!found) continue;
      torn.insert_or_assign(name, found->publication.seen);
      if (!is_temporary_name(name)) missing.push_back(name);
    }
    return missing;
  }

  asio::io_context& io;
  PublisherOptions options;
  std::function<void()> on_name;  // a name is published
  asio::steady_timer begin_to_watch;
  std::unique_ptr<FolderWatch> watch;
  PublishQueue queue;
  bool busy = false;  // the thread has work
  bool at_end = false;
  std::map<std::string, FileState> published;  // the newest content that is published, by name
  std::map<std::string, FileState> torn;       // perhaps unfinished: left by ranks that ended badly
  FailedNames failures;
  std::optional<Refusal> refusal;  // from the first file on
  int rounds = 0;                  // of publishing at the end
  bool cleared = false;            // what is published was removed, and nothing has come since
  std::function<void()> when_idle;
  std::function<void(std::string)> on_settled;
  WorkerThread thread;  // last: its destruction waits for the copy under way
};

Publishing::Publishing(asio::io_context& io, PublisherOptions options, std::function<void()> on_name)
    : state_(std::make_shared<State>(io, std::move(options), std::move(on_name))) {}

Publishing::~Publishing() = default;

void Publishing::start_watching() {
  state_->options.watch_after.count() == 0 ? state_->start_watching() : state_->watch_later();
}

void Publishing::publish_to(std::string files) { state_->options.files = std::move(files); }
void Publishing::settle(std::function<void(std::string)> on_done) { state_->settle(std::move(on_done)); }
void Publishing::abandon(std::function<void(std::vector<std::string>)> on_done) { state_->abandon(std::move(on_done)); }

}  // namespace taas::storage
