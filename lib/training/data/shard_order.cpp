#include "training/data/shard_order.hpp"

namespace taas {

ShardOrder::ShardOrder(const StreamTask& any, const StreamPosition& from) : next_(any), ended_(from.ended) {
  next_.turn = from.next.turn;
  next_.worker = from.next.worker;
}

std::optional<OrderedTask> ShardOrder::next() {
  while (ended_.size() < next_.num_workers) {
    auto task = next_;
    bool is_last = task.worker + 1 == task.num_workers;
    next_.turn += is_last ? 1 : 0;
    next_.worker = is_last ? 0 : task.worker + 1;
    if (ended_.contains(task.worker)) continue;
    return OrderedTask{
        .bytes = task.to_bytes(), .home = home(task.worker), .shard = ShardPlace{task.turn, task.worker}};
  }
  return std::nullopt;
}

void ShardOrder::keep_homes(std::uint64_t worker, std::uint64_t workers) {
  for (std::uint64_t own = 0; own < next_.num_workers; ++own) {
    if (home(own) % workers != worker) ended_.insert(own);
  }
}

}  // namespace taas
