#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "training/data/data_order.hpp"
#include "training/data/stream_position.hpp"
#include "training/making/stream_task.hpp"

namespace taas {

/// The batches of a stream: those of its logical workers in turn, and one whose shard has ended is left out from then
/// on. Each logical worker of each rank has a home of its own.
class ShardOrder : public BatchOrder {
 public:
  /// `any` is a task of this rank's loop.
  ShardOrder(const StreamTask& any, const StreamPosition& from);

  std::optional<OrderedTask> next() override;
  void ended(const OrderedTask& task) override { ended_.insert(task.shard->worker); }
  /// Leaves out what the data worker `worker` of `workers` is not the home of.
  void keep_homes(std::uint64_t worker, std::uint64_t workers);

 private:
  [[nodiscard]] std::uint64_t home(std::uint64_t worker) const { return next_.seeds.rank * next_.num_workers + worker; }

  StreamTask next_;
  std::set<std::uint64_t> ended_;
};

}  // namespace taas
