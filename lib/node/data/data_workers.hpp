#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/folders/held_folder.hpp"
#include "node/data/data_listeners.hpp"

namespace taas {
class DiskThread;
class Family;
class Ruleset;
}  // namespace taas

namespace taas::node {

/// One data worker of this machine, over all processes that it ever has.
struct DataWorkerStart {
  int worker = 0;                        ///< its place in the list of all workers
  std::string name;                      ///< for people
  std::vector<std::string> environment;  ///< complete, "NAME=value"; it inherits its listeners as descriptors 3 and 4
  HeldPath logs;                         ///< the folder of its log files
  const DataListeners* listeners = nullptr;
  const Ruleset* read_only = nullptr;  ///< null: it may write anywhere
};

/// A data worker's process has ended by itself.
struct DataWorkerEnd {
  int worker = 0;
  std::string name;
  bool killed = false;    ///< by a signal that it did not give itself: an exception that nobody catches aborts
  std::string why;        ///< "was killed by SIGKILL"
  std::string last_line;  ///< of its stderr; may be empty
  bool is_news = true;    ///< the first end after it has worked for a while
  Instant at{};
};

/// Keeps the data workers of this machine running: a process that ends is followed by another, at once, or after a
/// pause when that happens again and again. All are killed with this object.
class DataWorkers {
 public:
  DataWorkers(boost::asio::io_context& io, Family& family, DiskThread& disk, std::vector<std::string> command,
              std::function<void(const DataWorkerEnd&)> on_end);
  ~DataWorkers();
  DataWorkers(const DataWorkers&) = delete;
  DataWorkers& operator=(const DataWorkers&) = delete;

  /// Returns once its program runs. The listeners outlive this object.
  Result<> start(DataWorkerStart worker);

 private:
  struct Worker;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::node
