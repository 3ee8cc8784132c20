#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "training/data/data_order.hpp"
#include "training/making/batch_maker.hpp"
#include "training/serving/prepared_batches.hpp"

namespace taas {

/// Which of the data workers this one is.
struct WorkerPlace {
  std::size_t worker = 0;
  std::size_t workers = 1;
};

/// One data worker's share in what --loader names: the first batches of all ranks, made before there are ranks. A cache
/// of what ranks will ask for.
class LoaderPreparation {
 public:
  /// `orders` are those of the ranks, and of streams the shards that this worker is the home of.
  LoaderPreparation(std::string name, std::shared_ptr<BatchMaker> maker, std::deque<std::unique_ptr<BatchOrder>> orders,
                    WorkerPlace place, std::size_t most_bytes);

  /// Makes one more batch. What throws is left to the rank that asks for it.
  void step();
  /// All is made, or the memory is full.
  [[nodiscard]] bool is_done() const { return orders_.empty() || batches_.is_full(); }
  /// The batch of a rank's task, if it is here.
  std::optional<MadeBatch> take(const std::string& task);
  [[nodiscard]] const PreparedBatches& batches() const { return batches_; }
  /// What is to be said, once: ranks ask for other batches than those that were made.
  std::optional<std::string> take_remark();

 private:
  /// The next task of this worker's share; of all ranks in turn.
  std::optional<OrderedTask> next_own();
  [[nodiscard]] bool is_own(const OrderedTask& task) const { return task.home % place_.workers == place_.worker; }

  std::string name_;
  std::shared_ptr<BatchMaker> maker_;
  std::deque<std::unique_ptr<BatchOrder>> orders_;  // of the ranks that have more
  WorkerPlace place_;
  PreparedBatches batches_;
  std::uint64_t asked_ = 0;  // tasks of ranks
  std::uint64_t given_ = 0;  // of them, from here
  bool told_ = false;
};

}  // namespace taas
