#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/schedule/schedule.hpp"
#include "data/server/job_queue.hpp"
#include "sim/agenda.hpp"

namespace taas::sim_data {

using sim::Agenda;

/// One batch that a worker is asked for. Everything that decides its content is in it.
struct Order {
  data::Attempt attempt = 0;
  data::Task task;
  int loader = 0;
  int epoch = 0;
  std::uint64_t batch = 0;  ///< of the epoch
  int shard = -1;           ///< of an iterable dataset, with
  int shards = 0;           ///< so many
  Duration cost{};          ///< at speed 1
  bool impossible = false;  ///< for this worker
};

/// What is made of it, as a number: the same whoever makes it.
std::uint64_t content(int loader, int epoch, std::uint64_t batch);

/// A data worker's process on its machine: makes one batch at a time, in the order of the real queue, and only with the
/// definition of its loader, which it asks for and keeps a few of. Threads and sockets of the real client and server
/// are not here: they wait on the system's clock, and are tested over connections that are cut and delayed
/// (tests/data).
class Machine {
 public:
  Machine(Agenda& agenda, double slowness, bool abandons) : agenda_(agenda), slowness_(slowness), abandons_(abandons) {}

  std::function<void(data::Attempt)> started;
  std::function<void(const Order&)> made;

  void receive(const Order& order);
  void withdraw(data::Attempt attempt);
  /// The link is closed: nobody wants any of it.
  void drop_all();
  void kill();
  void start();
  void freeze();
  void thaw();

  [[nodiscard]] bool alive() const { return alive_; }
  /// Which process it is.
  [[nodiscard]] int life() const { return life_; }
  [[nodiscard]] bool frozen() const { return frozen_; }

 private:
  void begin();
  void run_for(Duration duration);
  void finish();
  void ask_for(const std::string& definition);
  void take_definition(const std::string& definition);
  void forget_a_definition();
  [[nodiscard]] Duration duration_of(const Order& order);

  Agenda& agenda_;
  double slowness_;
  bool abandons_;
  bool alive_ = true;
  int life_ = 0;
  bool frozen_ = false;
  data::JobQueue queue_;
  std::map<data::Attempt, Order> orders_;  ///< those in the queue
  std::set<std::string> definitions_;      ///< that are here
  std::set<std::string> asked_;            ///< that are on their way
  int links_ = 0;                          ///< that were closed: what was asked for over them does not come
  std::optional<Order> running_;
  bool wanted_ = true;  ///< the running one
  std::uint64_t ticket_ = 0;
  Instant done_at_{};
  Duration remaining_{};
  std::vector<std::function<void()>> unread_;                          ///< what came while it was frozen
  std::map<std::pair<data::StreamId, int>, std::uint64_t> positions_;  ///< of shards: batches made so far
};

}  // namespace taas::sim_data
