#include "storage/publishing/publishing.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/disk_thread.hpp"
#include "storage/publishing/failed_names.hpp"
#include "storage/publishing/folder_watch.hpp"
#include "storage/publishing/publish_file.hpp"
#include "storage/publishing/publish_queue.hpp"
#include "storage/publishing/staged_files.hpp"

namespace taas::storage {
namespace asio = boost::asio;

namespace {

constexpr int kLooks = 4;
constexpr auto kLookAgainAfter = std::chrono::milliseconds(20);
constexpr auto kTryAgainAfter = std::chrono::seconds(1);
constexpr int kMostRounds = 20;  // at the end, for processes that are not the run's and write without end

/// A staged file that is not published yet.
struct Examined {
  Publication publication;
  StagedFile::Writers writers;
};

}  // namespace

struct Publishing::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, PublisherOptions chosen, std::function<void()> count)
      : io(loop), options(std::move(chosen)), on_name(std::move(count)), begin_to_watch(loop), judge_again(loop) {
    take_staging();
    if (options.inherits) mark_torn();
  }

  void watch_later(std::chrono::milliseconds wait) {
    begin_to_watch.expires_after(wait);
    begin_to_watch.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
      if (auto self = weak.lock(); self && !cancelled && !self->at_end) self->start_watching();
    });
  }

  void settle(std::function<void(std::string, std::vector<Doubtful>)> on_done) {
    catch_up();
    end_watching();
    begin_to_watch.cancel();
    at_end = true;
    on_settled = std::move(on_done);
    when_idle = [this] { begin_to_settle(); };
    pump();
  }

  void abandon(std::function<void(std::vector<Doubtful>)> on_done) {
    catch_up();
    when_idle = [this, on_done = std::move(on_done)] {
      offers.begin();
      killed_before = 0;
      asked.clear();
      auto left = mark_torn();
      // Those that another kernel's ranks have written are its publisher's to name.
      if (!sharing.alone) std::erase_if(left, [this](const Doubtful& one) { return !heard.contains(one.name); });
      on_done(std::move(left));
    };
    pump();
  }

  // Watching.

  void start_watching() {
    FolderWatch::Callbacks calls;
    calls.on_files = [this](const std::vector<FoundFile>& found) { hear(found); };
    calls.on_mark = [this] { take_stop(); };
    calls.on_replaced = [this] {  // later, since it may end this watch
      asio::post(io, [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->take_staging();
      });
    };
    auto started = FolderWatch::start(io, options.place, options.staging, std::move(calls));
    if (started) {
      const std::lock_guard lock(marking);
      watch = std::move(*started);
    } else if (!obstacle) {
      tell_unwatched(started.error());
      watch_later(kTryAgainAfter);  // others may use up what a user may have of watches, and give it back
    }
    judge();
  }

  void tell_unwatched(Error error) {
    if (!options.on_error || std::exchange(unwatched_told, true)) return;
    error.message += "; output appears only when the run ends, or once this is possible";
    options.on_error(error);
  }

  void end_watching() {
    const std::lock_guard lock(marking);
    watch.reset();
  }

  /// Opens what has the staging folder's name now. Folders that the program has made anew are as good as the first one;
  /// nothing else is.
  void take_staging() {
    auto found = options.place.folder(options.staging);
    if (found) {
      const bool same = staging && is_same(*found);
      obstacle.reset();
      if (same) return;
      const bool watched = watch != nullptr;
      staging = std::move(*found);
      if (watched) {
        end_watching();
        start_watching();
      }
      return;
    }
    if (found.error().system_errno == ENOENT && staging) return;  // removed, perhaps to be made anew
    auto error = found.error();
    error.message += ": nothing is published from there, and what is in it stays";
    const bool told = obstacle && obstacle->message == error.message;
    obstacle = std::move(error);
    if (!told && options.on_error) options.on_error(*obstacle);
  }

  [[nodiscard]] bool is_same(const HeldFolder& other) const {
    struct stat own {
    }, its{};
    return ::fstat(staging.descriptor().get(), &own) == 0 && ::fstat(other.descriptor().get(), &its) == 0 &&
           own.st_dev == its.st_dev && own.st_ino == its.st_ino;
  }

  // Stops, which other threads tell of. Each has its place among the events of the watch.

  void tell_stop(Stop stop) {
    if (options.writers) stop.killed_before = options.writers->killed();
    const std::lock_guard lock(marking);
    stops.push_back(std::move(stop));
    if (watch) watch->mark();
  }

  void take_stop() {
    std::optional<Stop> next;
    {
      const std::lock_guard lock(marking);
      if (stops.empty()) return;
      next = std::move(stops.front());
      stops.pop_front();
    }
    judge();
    offers.stop(*next, steady_now());
    killed_before = next->killed_before;
  }

  [[nodiscard]] bool stops_wait() {
    const std::lock_guard lock(marking);
    return !stops.empty();
  }

  /// All that has happened by now is heard and judged.
  void catch_up() {
    if (watch) watch->drain();
    while (stops_wait()) take_stop();
    judge();
    take_staging();
  }

  // What is published while the run goes on.

  void hear(const std::vector<FoundFile>& found) {
    using How = FoundFile::How;
    const auto now = steady_now();
    seen_files = true;
    for (const auto& [name, how] : found) {
      if (is_temporary_name(name)) continue;
      if (!sharing.alone) heard.insert(name);
      if (how == How::kPlaced) offers.placed(name);
      if (how == How::kPlaced) publish(name);
      if (how == How::kClosed) offers.closed(name, now);
      if (how == How::kThere) look_at(name, now);
    }
    judge();
  }

  void look_at(const std::string& name, Instant now) {
    auto there = examine(name);
    if (!there) return;
    if (there->publication.link) return enqueue(std::move(there->publication));
    if (there->writers == StagedFile::Writers::kNone) offers.found(name, now);
  }

  void judge() {
    const auto now = steady_now();
    const auto known = options.writers ? options.writers->look(now, killed_before) : WritersState::kWell;
    judge_again.cancel();
    if (sharing.others && offers.stopped()) return;  // what others' ranks had open then is not known here
    auto whole = offers.take(known, now);
    if (options.ask && !offers.stopped() && !whole.empty()) {
      ask(whole);
    } else {
      for (const auto& name : whole) publish(name);
    }
    auto again = offers.ask_again(known, now);
    if (!again) return;
    judge_again.expires_at(*again);
    judge_again.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
      if (auto self = weak.lock(); self && !cancelled) self->judge_what_has_happened();
    });
  }

  /// Only what was seen before the question counts by the answer.
  void ask(const std::vector<std::string>& names) {
    auto& waiting = asked[++questions];
    for (const auto& name : names) {
      auto found = examine(name);
      const bool closed = found && found->writers != StagedFile::Writers::kOpen;
      if (closed) waiting.push_back(std::move(found->publication));
    }
    options.ask(questions);
  }

  void confirm(std::uint64_t number, bool well) {
    auto answered = asked.extract(number);
    if (answered.empty()) return;
    if (offers.stopped()) return;  // too late: only a good end says more
    for (auto& publication : answered.mapped()) {
      if (well) {
        enqueue(std::move(publication));
      } else {
        offers.found(publication.name, steady_now());
      }
    }
    judge();
  }

  void judge_what_has_happened() {
    if (watch) watch->drain();
    judge();
  }

  /// The kernel tells of a close a moment before the file counts as closed, so that one which still seems open then is
  /// looked at again.
  void publish(const std::string& name, int looks = kLooks) {
    auto found = examine(name);
    if (!found) return;
    if (found->writers != StagedFile::Writers::kOpen) return enqueue(std::move(found->publication));
    if (looks > 1) look_again(name, looks - 1);
  }

  void look_again(const std::string& name, int looks) {
    ++looking;
    auto soon = std::make_shared<asio::steady_timer>(io, kLookAgainAfter);
    soon->async_wait([weak = weak_from_this(), soon, name, looks](const auto& /*cancelled*/) {
      auto self = weak.lock();
      if (!self) return;
      --self->looking;
      self->publish(name, looks);
      self->pump();
    });
  }

  /// What there is to publish under this name; nothing when that is published already, or not to be.
  std::optional<Examined> examine(const std::string& name) {
    if (obstacle) return std::nullopt;
    Examined found{{staging, options.files, name, {}, false, meaning_of_refusal(), at_end}, StagedFile::Writers::kNone};
    if (auto file = StagedFile::open(staging, name, meaning_of_refusal())) {
      found.publication.seen = file->state();
      found.writers = file->writers();
    } else if (auto link = link_state(staging, name)) {
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
    if (!refusal) refusal = learn_refusal(options.place);
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
    if (looking == 0 && when_idle) std::exchange(when_idle, nullptr)();
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
      look_at(name, steady_now());  // at the end, the next round finds it
      judge();
    }
  }

  void fail(const std::string& name, const Error& error, const FileState& seen = {}) {
    if (failures.add(name, error, seen) && options.on_error) options.on_error(error);
  }

  /// What is staged and not published yet; what cannot be is among the failures.
  std::vector<Publication> find_unpublished() {
    std::vector<Publication> unpublished;
    if (obstacle) return unpublished;
    auto staged = files_below(staging);
    for (const auto& [name, error] : staged.unread) fail(name, error);
    for (const auto& name : staged.names) {
      auto found = examine(name);
      if (!found) continue;
      const bool is_others =
          !sharing.alone && !published.contains(name) && is_published(options.files, name, found->publication.seen);
      if (is_others) continue;
      if (found->writers == StagedFile::Writers::kOpen) {
        fail(name, unavailable_error("cannot publish " + name + ": a process still has it open for writing"));
      } else if (!failures.stays(name, found->publication.seen)) {
        unpublished.push_back(std::move(found->publication));
      }
    }
    return unpublished;
  }

  void begin_to_settle() {
    judge_again.cancel();
    doubtful = mark_torn([this](const std::string& name) { return offers.was_cut_off(name); });
    settle_round();
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
    std::erase_if(torn, [&](const auto& file) { return !staging.has(file.first); });
    bool keep = !failures.empty() || !torn.empty() || obstacle;
    auto meaning = refusal.value_or(Refusal::kMeansNothing);  // never asked for: there is no file
    auto clear = [keep, meaning, place = options.place, name = options.staging, staging = staging, known = published] {
      if (keep) return;
      remove_published(staging, known, meaning);
      place.remove_folder(name);
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
    const auto failed = failures.empty() ? "" : fmt::format("{}; it stays in {}", failures.message(), staging.path());
    done(obstacle ? obstacle->message : failed, std::move(doubtful));
  }

  /// Marks what is staged and not published; returns what a user would miss.
  std::vector<Doubtful> mark_torn(const std::function<bool(const std::string&)>& is_torn = nullptr) {
    std::vector<Doubtful> missing;
    if (obstacle) return missing;
    for (const auto& name : files_below(staging).names) {
      if (is_torn && !is_torn(name)) continue;
      auto found = examine(name);
      if (!found) continue;
      const auto& state = found->publication.seen;
      if (is_published(options.files, name, state)) {
        published.insert_or_assign(name, state);
        continue;
      }
      torn.insert_or_assign(name, state);
      if (!is_temporary_name(name)) missing.push_back({name, options.files.has(name)});
    }
    return missing;
  }

  asio::io_context& io;
  PublisherOptions options;
  std::function<void()> on_name;  // a name is published
  asio::steady_timer begin_to_watch;
  asio::steady_timer judge_again;
  HeldFolder staging;
  std::optional<Error> obstacle;  // what has taken the staging folder's place
  Offers offers;
  int killed_before = 0;  // of the writers, when they were told to end
  Sharing sharing;
  std::set<std::string> heard;                              // of those that share it: what was written here
  std::map<std::uint64_t, std::vector<Publication>> asked;  // by question: what waits for the answer
  std::uint64_t questions = 0;
  std::mutex marking;  // of what stop() touches
  std::unique_ptr<FolderWatch> watch;
  std::deque<Stop> stops;  // told, and not among the offers yet
  std::atomic<bool> seen_files{false};
  PublishQueue queue;
  bool unwatched_told = false;
  bool busy = false;  // the thread has work
  int looking = 0;    // files that are looked at again soon
  bool at_end = false;
  std::map<std::string, FileState> published;  // the newest content that is published, by name
  std::map<std::string, FileState> torn;       // perhaps unfinished: left by ranks that ended badly
  FailedNames failures;
  std::optional<Refusal> refusal;  // from the first file on
  int rounds = 0;                  // of publishing at the end
  bool cleared = false;            // what is published was removed, and nothing has come since
  std::function<void()> when_idle;
  std::vector<Doubtful> doubtful;  // at the end
  std::function<void(std::string, std::vector<Doubtful>)> on_settled;
  WorkerThread thread;  // last: its destruction waits for the copy under way
};

Publishing::Publishing(asio::io_context& io, PublisherOptions options, std::function<void()> on_name)
    : state_(std::make_shared<State>(io, std::move(options), std::move(on_name))) {}

Publishing::~Publishing() = default;

void Publishing::start_watching() {
  state_->options.watch_after.count() == 0 ? state_->start_watching()
                                           : state_->watch_later(state_->options.watch_after);
}

void Publishing::publish_to(HeldFolder files) { state_->options.files = std::move(files); }

void Publishing::share(Sharing sharing) { state_->sharing = sharing; }

void Publishing::confirm(std::uint64_t number, bool well) { state_->confirm(number, well); }

void Publishing::stop(Stop stop) { state_->tell_stop(std::move(stop)); }

void Publishing::catch_up_with_stops() { state_->catch_up(); }

bool Publishing::has_seen_files() const { return state_->seen_files; }

void Publishing::settle(std::function<void(std::string, std::vector<Doubtful>)> on_done) {
  state_->settle(std::move(on_done));
}

void Publishing::abandon(std::function<void(std::vector<Doubtful>)> on_done) { state_->abandon(std::move(on_done)); }

}  // namespace taas::storage
