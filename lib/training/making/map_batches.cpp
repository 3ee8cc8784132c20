#include "training/making/map_batches.hpp"

#include <torch/types.h>

#include "taas/error.hpp"
#include "training/making/dataset_code.hpp"
#include "training/making/random_state.hpp"

namespace taas {

std::string MapBatches::description() const {
  return "'" + loader_ + "' over " + std::to_string(dataset_->size()) + " examples";
}

FreshBatch MapBatches::make(std::string_view bytes) {
  const at::NoGradGuard no_gradients;
  auto task = DataTask::from_bytes(bytes);
  if (!task) throw DataError("a task of '" + loader_ + "' is of another release of taas");
  seed_default_generator(task->seed);
  std::string where;
  try {
    return {.tensors = made(*task, where)};
  } catch (...) {
    rethrow_from(place_in(loader_, where));
  }
}

Tensors MapBatches::made(const DataTask& task, std::string& where) const {
  std::vector<Tensors> examples;
  examples.reserve(task.indices.size());
  for (auto index : task.indices) {
    where = "example " + std::to_string(index);
    examples.push_back(dataset_->get(index));
  }
  where = "collating a batch";
  Tensors batch = collate_(std::move(examples));
  for (auto& tensor : batch) tensor = presentable(tensor, place_in(loader_, where));
  return batch;
}

}  // namespace taas
