#include "training/serving/prepared_batches.hpp"

#include <utility>

namespace taas {

bool PreparedBatches::is_full() const { return did_not_fit_ || room_ <= (count_ > 0 ? bytes_ / count_ : 0); }

void PreparedBatches::put(const std::string& task, MadeBatch batch) {
  auto size = batch.size();
  did_not_fit_ = size > room_;
  if (did_not_fit_) return;
  if (!batches_.try_emplace(task, std::move(batch)).second) return;
  room_ -= size;
  bytes_ += size;
  ++count_;
}

std::optional<MadeBatch> PreparedBatches::take(const std::string& task) {
  auto found = batches_.extract(task);
  if (!found) return std::nullopt;
  room_ += found.mapped().size();
  return std::move(found.mapped());
}

}  // namespace taas
