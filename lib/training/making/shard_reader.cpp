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

FreshBatch ShardReader::batch(std::uint64_t turn) {
  while (turn_ < std::min(turn, end_)) skip();
  return turn < end_ ? next() : end();
}

/// A batch that the loop has had: if it threw, it did so there.
void ShardReader::skip() {
  try {
    next();
  } catch (const DataError&) {
    return;
  }
}

FreshBatch ShardReader::next() {
  task_.turn = turn_++;
  seed_default_generator(task_.seeds.of_batch(task_.number()));
  try {
    auto examples = examples_ ? some() : std::vector<Tensors>();
    bool is_batch = !examples.empty() && (examples_ || !recipe_.drop_last);
    if (is_batch) return made_of(std::move(examples));
  } catch (...) {
    rethrow_from(place());
  }
  end_ = task_.turn;
  return end();
}

FreshBatch ShardReader::made_of(std::vector<Tensors> examples) {
  FreshBatch batch{.tensors = {}, .head = StreamHead{.before = chain_, .examples = examples.size()}};
  batch.tensors = recipe_.collate(std::move(examples));
  for (auto& tensor : batch.tensors) tensor = presentable(tensor, place());
  const auto made = made_batch({batch.tensors});
  chain_ = chain_digest(chain_, payload_digest(made), made.description);
  return batch;
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
