#include "training/data/data_staging.hpp"

#include <ATen/Functions.h>

#include <string>
#include <utility>

#include "taas/error.hpp"
#include "training/making/data_batch.hpp"

namespace taas {
namespace {

constexpr std::uint64_t kFirst = 16;
constexpr std::uint64_t kEvery = 1000;

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.contiguous().view({-1}).view(at::kByte); }

void compare(const at::Tensor& source, const at::Tensor& copy, const std::string& what) {
  auto there = copy.cpu();
  if (there.sizes() == source.sizes() && there.scalar_type() == source.scalar_type()) {
    auto different = bytes_of(source).ne(bytes_of(there)).nonzero();
    if (different.numel() == 0) return;
    auto place = different[0].item<std::int64_t>() / static_cast<std::int64_t>(source.element_size());
    auto element = [place](const at::Tensor& of) { return of.contiguous().view({-1})[place].item(); };
    throw DataError(what + " is not on " + copy.device().str() + " what it is in memory: element " +
                    std::to_string(place) + " is " + std::to_string(element(there).toDouble()) + " there and " +
                    std::to_string(element(source).toDouble()) +
                    " here; leave DataLoaderOptions::device out, copy batches with .to(), and tell us which GPU it is");
  }
  throw DataError(what + " has another shape or type on " + copy.device().str() + " than in memory");
}

}  // namespace

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
    ask(staged, view_batch(*batch));
  } catch (const std::exception&) {
    return;
  }
  batch->slot.reset();
}

void DataStaging::ask(Staged& staged, Tensors tensors) {
  staged.started = copies_->start(tensors);
  staged.number = copied_++;
  if (staged.number < kFirst || staged.number % kEvery == 0) staged.source = std::move(tensors);
}

Tensors DataStaging::finish(Staged& staged) {
  auto copies = copies_->finish(std::move(*staged.started));
  for (std::size_t place = 0; place < staged.source.size(); ++place) {
    compare(staged.source[place], copies.at(place),
            "tensor " + std::to_string(place) + " of batch " + std::to_string(staged.number));
  }
  return copies;
}

Tensors DataStaging::tensors_of(Staged& staged) {
  if (staged.started) return finish(staged);
  return moved(view_batch(std::get<data::Batch>(staged.delivery)));
}

Tensors DataStaging::moved(Tensors tensors) {
  if (!copies_) return tensors;
  Staged staged;
  ask(staged, std::move(tensors));
  return finish(staged);
}

}  // namespace taas
