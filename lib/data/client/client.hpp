#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "data/memory/memory.hpp"
#include "data/memory/slots.hpp"
#include "data/schedule/schedule.hpp"
#include "data/transport/handshake.hpp"
#include "data/wire/codec.hpp"

namespace taas::data {

/// Where a data worker listens.
struct WorkerAddress {
  std::string name;     ///< for people: "data worker 3 (host b)"
  std::string address;  ///< numeric; empty: only unix_path
  std::uint16_t port = 0;
  std::string unix_path;  ///< of a socket on the same machine, or empty. Tried first where it exists
  friend bool operator==(const WorkerAddress&, const WorkerAddress&) = default;
};

struct ClientOptions {
  std::string run_id;
  std::string key;  ///< 32 bytes: net::Secret::key
  Encryption encryption = Encryption::kTls;
  Compression compression = Compression::kNone;
  std::size_t budget_bytes = std::size_t{1} << 30;  ///< for batches under way and waiting, over all streams
  SchedulePolicy schedule;
};

/// What a loader is made of, in the form that its workers load it from: a pickle, or a name. Sent once to each worker.
struct Definition {
  std::string digest;  ///< of all of it, 32 hexadecimal digits: two that are equal are one
  std::shared_ptr<const std::string> bytes = nullptr;
  std::shared_ptr<const SealedMemory> memory = nullptr;  ///< goes along: workers on this machine map it. Null: none
};

/// One batch as it came: `payload` lies in a slot that is free again when the last owner of the Batch has let it go.
struct Batch {
  std::span<std::byte> payload;  ///< all buffers, one behind the other; 64-byte aligned
  std::shared_ptr<Slot> slot;    ///< null: the batch has no buffers
  std::uint64_t digest = 0;      ///< XXH3 of payload, made by the worker
  WorkerIndex worker = -1;       ///< who made it
};
/// The dataset's code raised: `text` is the traceback; `pickled` the exception as the worker pickled it, or empty.
struct Raised {
  std::string type;
  std::string text;
  std::string pickled;
  WorkerIndex worker = -1;
};
/// Why no batch will come: every worker is gone for good, or returned the task ("batch of 3.1 GB does not fit …").
struct Undeliverable {
  std::string message;
};
using Outcome = std::variant<Batch, Raised, Undeliverable>;

/// Over the life of a stream, or of the client.
struct Statistics {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hedged = 0;   ///< attempts beyond a task's first one
  std::uint64_t late = 0;     ///< copies thrown away
  double waited_seconds = 0;  ///< in next() with nothing there
  int waiting = 0;            ///< batches that are here and not taken
  int workers_up = 0;
  std::size_t buffered_bytes = 0;
};

/// A rank's end of data delivery: links to all data workers, the schedule, and the slots that batches are received
/// into. Threads of its own, none of which calls back. All functions may be called from any thread, but none in a
/// forked child: the threads are not there. What a child does with it does nothing, and next() says so.
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The workers that there are now; those that are gone lose their tasks, links to new ones are opened. Places in the
  /// list stay: one that has left is an entry without address and path.
  void set_workers(std::vector<WorkerAddress> workers);

  /// A pass over a loader. Workers that do not have the definition ask for it.
  StreamId open(Definition definition);
  /// The next task of the stream, opaque here; numbers count up from 0 by themselves.
  void submit(StreamId stream, std::string payload, WorkerIndex preferred = -1, bool pinned = false);
  /// The stream's next outcome, in the order of submission; nothing when `patience` is over first. Without patience it
  /// is only a look: the loop is not waiting for it.
  std::optional<Outcome> next(StreamId stream, Duration patience);
  void close(StreamId stream);

  [[nodiscard]] Statistics statistics(StreamId stream) const;
  [[nodiscard]] Statistics statistics() const;
  /// Lines for people since the last call: a worker that was lost, one that refuses this client.
  std::vector<std::string> take_remarks();

  /// True in a process that was forked from the client's.
  [[nodiscard]] bool is_forked() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace taas::data
