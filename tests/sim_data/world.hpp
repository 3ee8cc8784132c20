#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine.hpp"
#include "referee.hpp"
#include "settings.hpp"
#include "sim/pipe.hpp"

namespace taas::sim_data {

/// How a simulated run went.
struct RunOutcome {
  std::vector<std::string> violations;  ///< invariants that did not hold
  Duration length{};
  Duration longest_wait{};  ///< of a loop for one batch
  int copies = 0;
  int given_up = 0;
  int replayed = 0;  ///< batches that a killed rank had taken after its checkpoint
  int downs = 0;     ///< how often a worker was lost
  int beyond_credits = 0;
};

/// A rank with the real Schedule, data workers, the wire between them and what goes wrong, in virtual time.
class World {
 public:
  World(std::uint64_t seed, Settings settings);
  /// Called with a line for everything that happens and is decided.
  std::function<void(const std::string&)> on_line;
  RunOutcome run();

 private:
  /// A connection to a worker, while it is open at the rank's end.
  struct Connection {
    std::shared_ptr<sim::Pipe> down;
    std::shared_ptr<sim::Pipe> up;
  };
  struct Worker {
    std::unique_ptr<Machine> machine;
    sim::Path path;
    std::uint64_t connection = 0;  ///< counts up; what belongs to an older one is not heard
    bool connected = false;
    int peer = 0;               ///< life of the machine's process at the other end
    bool stays_away = false;    ///< left, or dead for good
    std::uint64_t silence = 0;  ///< counts up when it ends
    Connection pipes;
  };
  struct Loader {
    LoaderSettings settings;
    std::vector<std::uint64_t> delivered;  ///< all contents that the loop has seen, in order; 0: given up
    std::size_t saved = 0;                 ///< of them at the last checkpoint
    int epoch = 0, saved_epoch = 0;
    std::uint64_t position = 0, saved_position = 0;
    StreamId stream = 0;
    std::uint64_t origin = 0;                       ///< number 0 of the stream is this batch of the epoch
    std::uint64_t submitted = 0;                    ///< batches of the epoch
    std::map<std::uint64_t, std::uint64_t> buffer;  ///< number → content
    bool waits = false;
    Instant waits_since{};
    bool done = false;
  };

  // The rank (rank.cpp).
  void start_rank();
  void kill_rank();
  void open(int loader);
  void submit(int loader);
  void step(int loader);
  void take(int loader);
  void end_epoch(int loader);
  void keep(const Task& task, std::uint64_t content);
  void checkpoint();
  [[nodiscard]] Order order(const Assign& assign);
  [[nodiscard]] std::vector<std::uint64_t> expected(int loader) const;
  [[nodiscard]] bool all_done() const;

  // The schedule.
  void feed(const ScheduleEvent& event, std::uint64_t content = 0);
  void act(const Assign& action, std::uint64_t content);
  void act(const Withdraw& action, std::uint64_t content);
  void act(const Keep& action, std::uint64_t content);
  void act(const Discard&, std::uint64_t) {}
  void act(const GiveUp& action, std::uint64_t content);
  void act(const SetAlarm& action, std::uint64_t content);

  // Workers and the wire (wire.cpp).
  void add_worker(double slowness);
  void connect(WorkerIndex index);
  void lose(WorkerIndex index);
  void fall_silent(WorkerIndex index);
  void heard(WorkerIndex index);
  void said(WorkerIndex index, std::function<ScheduleEvent()> what, std::uint64_t content);
  [[nodiscard]] Worker& worker(WorkerIndex index) { return *workers_[static_cast<std::size_t>(index)]; }

  // What goes wrong (faults.cpp).
  void draw_fault();
  void kill_worker(WorkerIndex index, bool for_good);
  void freeze(WorkerIndex index, Duration length, bool for_good);
  void cut(WorkerIndex index, Duration length);
  [[nodiscard]] Duration bound() const;
  [[nodiscard]] Duration expected_length() const;

  void require(bool holds, const std::string& what);
  void say(const std::string& line);

  Agenda agenda_;
  Random random_;
  Settings settings_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Loader> loaders_;
  std::map<StreamId, int> loader_of_;
  std::unique_ptr<Referee> referee_;  ///< none while the rank is dead
  std::uint64_t life_ = 0;            ///< of the rank
  std::uint64_t alarm_ = 0;
  StreamId last_stream_ = 0;
  int taken_ = 0;
  Duration trouble_{};  ///< how long faults last, all together
  RunOutcome outcome_;
};

}  // namespace taas::sim_data
