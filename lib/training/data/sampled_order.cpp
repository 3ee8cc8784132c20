#include "training/data/sampled_order.hpp"

#include <utility>

namespace taas {

std::optional<OrderedTask> SampledOrder::next() {
  if (drained_) return std::nullopt;
  auto indices = sampler_.next(batch_size_);
  bool is_batch = indices && !indices->empty() && (indices->size() == batch_size_ || !drop_last_);
  drained_ = !is_batch;
  if (drained_) return std::nullopt;
  auto number = drawn_++;
  const DataTask task{.seed = seeds_.of_batch(number), .indices = std::move(*indices)};
  return OrderedTask{.bytes = task.to_bytes(), .home = number, .examples = task.indices.size()};
}

void SampledOrder::skip(std::int64_t batches) {
  for (std::int64_t skipped = 0; skipped < batches; ++skipped) next();
}

}  // namespace taas
