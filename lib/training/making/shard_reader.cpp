#include "training/making/shard_reader.hpp"

#include <utility>
#include <vector>

#include "taas/error.hpp"
#include "training/making/data_batch.hpp"
#include "training/making/dataset_code.hpp"
#include "training/making/random_state.hpp"

namespace taas {

ShardReader::ShardReader(const StreamRecipe& recipe, const StreamTask& task) : recipe_(recipe), task_(task) {
  seed_default_generator(task_.seeds.of_worker(task_.worker));
  try {
    examples_ = recipe_.dataset->examples(task_.shard());
  } catch (...) {
    rethrow_from(place_in(recipe_.loader, "beginning " + shard_name()));
  }
  if (!examples_) throw DataError(place_in(recipe_.loader, shard_name()) + ": examples() gave a null pointer");
}

std::optional<FreshBatch> ShardReader::batch(std::uint64_t turn) {
  while (turn_ < std::min(turn, end_)) skip();
  if (turn >= end_) return std::nullopt;
  auto found = next();
  if (!found) end_ = turn;
  return found;
}

/// A batch that the loop has had: if it threw, it did so there.
void ShardReader::skip() {
  try {
    if (!next()) end_ = turn_ - 1;
  } catch (const DataError&) {
    return;
  }
}

std::optional<FreshBatch> ShardReader::next() {
  auto turn = turn_++;
  if (!examples_) return std::nullopt;
  task_.turn = turn;
  seed_default_generator(task_.seeds.of_batch(task_.number()));
  std::vector<Tensors> examples;
  try {
    examples = some();
    if (examples.empty() || (recipe_.drop_last && !examples_)) return std::nullopt;
    FreshBatch batch{.tensors = {}, .head = StreamHead{.before = chain_, .examples = examples.size()}};
    batch.tensors = recipe_.collate(std::move(examples));
    for (auto& tensor : batch.tensors) tensor = presentable(tensor, place());
    chain_ = chain_digest(chain_, payload_digest(made_batch({batch.tensors})), describe(batch.tensors));
    return batch;
  } catch (...) {
    rethrow_from(place());
  }
}

/// Those of one batch; fewer at the end.
std::vector<Tensors> ShardReader::some() {
  std::vector<Tensors> examples;
  while (examples.size() < recipe_.batch_size) {
    auto example = examples_->next();
    if (!example) {
      examples_.reset();
      break;
    }
    examples.push_back(std::move(*example));
  }
  return examples;
}

std::string ShardReader::shard_name() const {
  return "shard " + std::to_string(task_.shard().index()) + " of " + std::to_string(task_.shard().count());
}

std::string ShardReader::place() const {
  return place_in(recipe_.loader, "batch " + std::to_string(task_.turn) + " in " + shard_name());
}

}  // namespace taas
