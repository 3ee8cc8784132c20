#include "storage/delivery/file_receiver.hpp"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <map>
#include <utility>

#include "base/disk_thread.hpp"

namespace taas::storage {
namespace {

namespace asio = boost::asio;

constexpr int kMostAtOnce = 8;  // files that come at the same time

/// One file on its way. What is below the line is the thread's.
struct Transfer {
  int source = 0;
  std::uint64_t number = 0;
  std::string name;
  std::uint64_t told = 0;      // to have been written
  std::uint64_t received = 0;  // in all
  bool begun = false;
  std::atomic<bool> cancelled = false;

  HeldPath folder;
  FileHead head;
  std::unique_ptr<IncomingFile> file;
};
using TransferPointer = std::shared_ptr<Transfer>;

/// What a step of the thread came to.
struct Step {
  bool complete = false;
  std::string error;
};

Step store(Transfer& transfer, Result<> done) {
  if (done && transfer.file->complete()) done = transfer.file->finish();
  const bool complete = done && transfer.file->complete();
  if (!done || complete) transfer.cancelled = true;  // later pieces have nowhere to go
  return {complete, done ? "" : done.error().message};
}

Step begin(Transfer& transfer, const std::string& shown) {
  const auto folder = transfer.folder.folder.make_folder(transfer.folder.name);
  auto file = folder ? begin_file(*folder, shown, std::move(transfer.head)) : folder.error();
  if (!file) transfer.cancelled = true;
  if (!file) return {false, file.error().message};
  transfer.file = std::move(*file);
  return transfer.file->complete() ? store(transfer, {}) : Step{};
}

}  // namespace

struct FileReceiver::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, FileReceiverOptions chosen) : io(loop), options(std::move(chosen)) {}

  template <class Work, class Then>
  void run_on_thread(Work work, Then then) {
    run_on(thread, [weak = weak_from_this(), work, then, guard = asio::make_work_guard(io)] {
      auto result = work();
      asio::post(guard.get_executor(), [weak, then, result = std::move(result)]() mutable {
        if (auto self = weak.lock()) then(*self, std::move(result));
      });
    });
  }

  void begin_next() {
    while (active < kMostAtOnce && !waiting.empty()) {
      auto transfer = std::exchange(waiting.front(), nullptr);
      waiting.pop_front();
      if (transfer->cancelled) continue;
      ++active;
      transfer->begun = true;
      auto work = [transfer, shown = options.files.path()] { return begin(*transfer, shown); };
      run_on_thread(work, [transfer](State& self, const Step& step) { self.advance(transfer, 0, step); });
    }
  }

  void advance(const TransferPointer& transfer, std::uint64_t written, const Step& step) {
    auto found = of_source.find(transfer->source);
    if (found == of_source.end() || found->second != transfer) return;  // cancelled meanwhile
    transfer->told += written;
    if (!step.complete && step.error.empty()) {
      return options.on_progress(transfer->source, transfer->number, transfer->told);
    }
    remove(transfer->source);
    options.on_stored(transfer->source, transfer->number, step.error);
  }

  /// Its place is free for another one.
  void remove(int source) {
    auto transfer = std::move(of_source.extract(source).mapped());
    transfer->cancelled = true;
    if (!transfer->begun) return;
    --active;
    begin_next();
  }

  asio::io_context& io;
  FileReceiverOptions options;
  std::map<int, TransferPointer> of_source;
  std::deque<TransferPointer> waiting;  // not begun yet
  int active = 0;                       // begun
  WorkerThread thread;                  // last: its destruction waits for the write under way
};

FileReceiver::FileReceiver(asio::io_context& io, FileReceiverOptions options)
    : state_(std::make_shared<State>(io, std::move(options))) {}
FileReceiver::~FileReceiver() = default;

bool FileReceiver::offer(int source, std::uint64_t transfer, const HeldPath& folder, FileHead head) {
  if (state_->of_source.contains(source)) return false;
  auto made = std::make_shared<Transfer>();
  made->source = source;
  made->number = transfer;
  made->name = head.name;
  made->folder = folder;
  made->head = std::move(head);
  state_->of_source.emplace(source, made);
  state_->waiting.push_back(std::move(made));
  state_->begin_next();
  return true;
}

/// What comes for a file that has just failed here was sent before its source knew.
bool FileReceiver::add(int source, std::uint64_t transfer, std::string bytes) {
  auto found = state_->of_source.find(source);
  if (found == state_->of_source.end() || found->second->number != transfer) return true;
  auto to = found->second;
  to->received += bytes.size();
  if (bytes.empty() || !to->begun || to->received - to->told > kMostUnwritten) return false;
  auto size = bytes.size();
  auto work = [to, bytes = std::move(bytes)] { return to->cancelled ? Step{} : store(*to, to->file->add(bytes)); };
  state_->run_on_thread(work, [to, size](State& self, const Step& step) { self.advance(to, size, step); });
  return true;
}

void FileReceiver::cancel(int source, std::uint64_t transfer) {
  auto found = state_->of_source.find(source);
  if (found != state_->of_source.end() && found->second->number == transfer) state_->remove(source);
}

std::optional<std::string> FileReceiver::forget(int source) {
  auto found = state_->of_source.find(source);
  if (found == state_->of_source.end()) return std::nullopt;
  auto name = found->second->name;
  state_->remove(source);
  return name;
}

void FileReceiver::place(std::vector<Delivered> delivered, std::function<void(Placed)> on_done) {
  auto work = [files = state_->options.files, delivered = std::move(delivered)] {
    return place_delivered(files, delivered);
  };
  state_->run_on_thread(work, [on_done = std::move(on_done)](State&, Placed placed) { on_done(std::move(placed)); });
}

}  // namespace taas::storage
