#include "training/data/data_staging.hpp"

#include <utility>

#include "training/making/data_batch.hpp"

namespace taas {

std::optional<DataStaging::Staged> DataStaging::next(const Source& source, std::size_t wanted, Duration patience) {
  if (ahead_.empty() && !take(source, patience)) return std::nullopt;
  auto staged = std::move(ahead_.front());
  ahead_.pop_front();
  while (copies_ && ahead_.size() < kAhead && ahead_.size() + 1 < wanted && take(source, Duration(0))) {
  }
  return staged;
}

bool DataStaging::take(const Source& source, Duration patience) {
  auto delivery = source(patience);
  if (!delivery) return false;
  ahead_.push_back({.delivery = std::move(*delivery), .started = std::nullopt});
  if (copies_) start(ahead_.back());
  return true;
}

/// A copy that fails is tried again when the loop is there, and throws then.
void DataStaging::start(Staged& staged) {
  auto* batch = std::get_if<data::Batch>(&staged.delivery);
  if (!batch) return;
  try {
    staged.started = copies_->start(view_batch(*batch));
  } catch (const std::exception&) {
    return;
  }
  batch->slot.reset();
}

Tensors DataStaging::tensors_of(Staged& staged) {
  if (staged.started) return copies_->finish(std::move(*staged.started));
  return moved(view_batch(std::get<data::Batch>(staged.delivery)));
}

Tensors DataStaging::moved(Tensors tensors) {
  return copies_ ? copies_->finish(copies_->start(tensors)) : std::move(tensors);
}

}  // namespace taas
