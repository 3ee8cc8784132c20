#include "node/output/delivery.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/disk_thread.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"
#include "node/output/send_window.hpp"
#include "run/messages/file_frames.hpp"

namespace taas::node {
namespace {

namespace asio = boost::asio;

/// A published file: its content stays what it is, since a later one has the name but is another file.
struct Opened {
  Fd fd;
  run::FileOffer offer;
};

/// Ranks may have put anything in its place.
Result<Opened> open_published(const HeldFolder& files, const std::string& name) {
  Opened opened;
  if (auto points_to = files.read_link(name)) {
    opened.offer.points_to = std::move(*points_to);
    return opened;
  }
  auto file = files.open_to_read(name);
  if (!file) return file.error();
  opened.fd = std::move(*file);
  struct stat found {};
  if (::fstat(opened.fd.get(), &found) != 0) return system_error("cannot read " + files.path_of(name), errno);
  opened.offer.size = static_cast<std::uint64_t>(found.st_size);
  opened.offer.mode = found.st_mode & 0777;
  return opened;
}

Result<std::string> read_piece(const Fd& fd, std::uint64_t at, std::uint64_t size) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    auto count = ::pread(fd.get(), bytes.data() + filled, size - filled, static_cast<off_t>(at + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot read it", errno);
    if (count == 0) return unavailable_error("it has become shorter");
    filled += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace

struct Delivery::State : std::enable_shared_from_this<State> {
  /// The file on its way.
  struct Current {
    std::string name;
    std::shared_ptr<Fd> fd = {};
    std::uint64_t transfer = 0;
    std::uint64_t size = 0;
    std::uint64_t sent = 0;
    std::uint64_t stored = 0;  // of what was sent
    bool accepted = false;
    bool reading = false;
    std::deque<std::pair<std::uint64_t, Instant>> sent_at = {};  // up to which byte, when
  };

  State(asio::io_context& loop, DeliveryOptions chosen)
      : io(loop), options(std::move(chosen)), files(HeldFolder::open(options.files)) {}

  /// The guard keeps the loop running until the result has come back to it. What a thread did for a file that is not
  /// the current one any more is dropped.
  template <class Work, class Then>
  void run_on_thread(Work work, Then then) {
    run_on(thread, [weak = weak_from_this(), work, then, of = current->transfer, guard = asio::make_work_guard(io)] {
      auto result = work();
      asio::post(guard.get_executor(), [weak, then, of, result = std::move(result)]() mutable {
        auto self = weak.lock();
        if (self && self->is_current(of)) then(*self, std::move(result));
      });
    });
  }

  [[nodiscard]] bool is_current(std::uint64_t transfer) const { return current && current->transfer == transfer; }

  void add(const std::string& name) {
    failures.erase(name);
    for (const auto& known : waiting) {
      if (known == name) return;
    }
    waiting.push_back(name);
    begin_next();
  }

  void begin_next() {
    if (current) return;
    if (waiting.empty()) return finish();
    current = Current{std::move(waiting.front())};
    waiting.pop_front();
    current->transfer = ++transfers;
    if (!files) return fail(files.error().message);
    run_on_thread([from = *files, name = current->name] { return open_published(from, name); },
                  [](State& self, Result<Opened> opened) { self.offer(std::move(opened)); });
  }

  void offer(Result<Opened> opened) {
    if (!opened) return fail(opened.error().message);
    auto& told = opened->offer;
    told.transfer = current->transfer;
    told.name = current->name;
    told.waiting = static_cast<std::uint32_t>(waiting.size());
    current->size = told.size;
    current->fd = std::make_shared<Fd>(std::move(opened->fd));
    options.send(run::encode(told));
  }

  void hear(const run::FileProgress& progress) {
    if (!is_current(progress.transfer)) return;
    current->accepted = true;
    current->stored = std::min(progress.received, current->sent);
    auto& times = current->sent_at;
    while (!times.empty() && times.front().first <= current->stored) {
      window.acknowledge(steady_now() - times.front().second);
      times.pop_front();
    }
    read_on();
  }

  void read_on() {
    bool room = current->sent - current->stored < window.bytes();
    if (!current->accepted || current->reading || current->sent == current->size || !room) return;
    current->reading = true;
    auto size = std::min<std::uint64_t>(run::kFilePieceBytes, current->size - current->sent);
    run_on_thread([fd = current->fd, at = current->sent, size] { return read_piece(*fd, at, size); },
                  [](State& self, const Result<std::string>& piece) { self.send(piece); });
  }

  void send(const Result<std::string>& piece) {
    current->reading = false;
    if (!piece) {
      options.send(run::encode(run::FileCancelled{current->transfer}));
      return fail(fmt::format("{}: {}", current->name, piece.error().message));
    }
    current->sent += piece->size();
    current->sent_at.emplace_back(current->sent, steady_now());
    options.send(run::encode(run::FilePiece{current->transfer, *piece}));
    read_on();
  }

  void hear(const run::FileStored& stored) {
    if (!is_current(stored.transfer)) return;
    if (!stored.error.empty()) return fail(stored.error);
    current.reset();
    begin_next();
  }

  /// Tried again at the end.
  void fail(const std::string& why) {
    auto name = std::move(current->name);
    current.reset();
    bool known = told_of.contains(name) && told_of[name] == why;
    told_of[name] = why;
    failures[name] = why;
    if (!known) options.on_failure(why);
    begin_next();
  }

  void begin_anew() {
    window = {};
    if (!current) return;
    waiting.push_front(std::move(current->name));
    current.reset();
    begin_next();
  }

  void settle(std::function<void(std::string)> on_done) {
    on_settled = std::move(on_done);
    for (const auto& [name, why] : std::exchange(failures, {})) waiting.push_back(name);
    // After the caller: what is done already is told from the loop as well.
    asio::post(io, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->begin_next();
    });
  }

  void finish() {
    if (!on_settled) return;
    auto done = std::exchange(on_settled, nullptr);
    if (failures.empty()) return done("");
    auto others = failures.size() - 1;
    done(fmt::format("{}{}; it stays in {}", failures.begin()->second,
                     others == 0 ? "" : fmt::format(" (and {} more)", others), options.files));
  }

  asio::io_context& io;
  DeliveryOptions options;
  Result<HeldFolder> files;  // held from the first generation on
  std::deque<std::string> waiting;
  std::optional<Current> current;
  std::uint64_t transfers = 0;
  SendWindow window;
  std::map<std::string, std::string> failures;  // by name: why
  std::map<std::string, std::string> told_of;   // the last failure that was told
  std::function<void(std::string)> on_settled;
  WorkerThread thread;  // last: its destruction waits for the read under way
};

Delivery::Delivery(asio::io_context& io, DeliveryOptions options)
    : state_(std::make_shared<State>(io, std::move(options))) {}
Delivery::~Delivery() = default;

void Delivery::add(const std::string& name) { state_->add(name); }
void Delivery::begin_anew() { state_->begin_anew(); }
void Delivery::hear(const run::FileProgress& progress) { state_->hear(progress); }
void Delivery::hear(const run::FileStored& stored) { state_->hear(stored); }
void Delivery::settle(std::function<void(std::string)> on_done) { state_->settle(std::move(on_done)); }

}  // namespace taas::node
