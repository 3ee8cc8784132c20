#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/disk_thread.hpp"
#include "base/timer.hpp"
#include "node/looks/rank_looker.hpp"
#include "proc/inspect/thread_facts.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

/// Whether a rank's main thread moves, by how much it has run: it is still when it has hardly run for two intervals.
class RankMotionSensor {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(5);
  enum class Change { kNone, kStill, kMoves };
  Change add(const RunTimes& times, Instant at);
  /// When what it does now began.
  [[nodiscard]] Instant since() const { return since_; }

 private:
  RunTimes last_;
  Instant last_at_{};
  Instant since_{};
  int quiet_ = 0;  // intervals
  bool still_ = false;
};

/// Tells which ranks of this node move (RankMotion), and looks at them when the coordinator asks (RanksSeen).
class RankWatch {
 public:
  struct Callbacks {
    std::function<std::vector<RankLooker::Target>()> living;
    std::function<std::vector<RankLooker::Target>()> data_workers;
    std::function<void(run::AgentMessage)> say;
    bool gpus_by_bus = false;  ///< CUDA numbers them as the driver does (CUDA_DEVICE_ORDER)
  };
  RankWatch(boost::asio::io_context& io, Callbacks callbacks);

  /// Ranks of it are about to start.
  void begin(Generation generation);
  /// None of it is left.
  void end();
  void look(const run::LookAtRanks& request);

 private:
  void sense();

  Callbacks callbacks_;
  Generation generation_{-1};
  std::map<int, RankMotionSensor> sensors_;  // by process
  Timer next_;
  std::shared_ptr<RankLooker> looker_;  // used by the thread alone
  DiskThread thread_;                   // from the first look on
};

}  // namespace taas::node
