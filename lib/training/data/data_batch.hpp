#pragma once

#include <ATen/core/Generator.h>

#include <string>
#include <string_view>

#include "data/client/client.hpp"
#include "taas/data.hpp"
#include "training/data/data_task.hpp"
#include "training/data/data_worker.hpp"

namespace taas {

/// The default CPU generator and the number of threads are at the end as they were at the beginning.
class UntouchedState {
 public:
  UntouchedState();
  ~UntouchedState();
  UntouchedState(const UntouchedState&) = delete;
  UntouchedState& operator=(const UntouchedState&) = delete;

 private:
  at::Tensor generator_;
  int threads_;
};

/// A copy of the default CPU generator's state: uint8.
at::Tensor default_generator_state();
void set_default_generator_state(const at::Tensor& state);
/// What the default generator was seeded with.
std::uint64_t default_seed();

/// The task's batch, contiguous and without gradients. Seeds the default generator. Throws DataError naming the example
/// at which the dataset's code has thrown.
Tensors make_batch(std::string_view loader, Dataset& dataset, const Collate& collate, const DataTask& task);

/// Kinds and sizes, on one line: "Float[64,3] Long[64]".
std::string describe(const Tensors& batch);
/// As a data worker sends it.
MadeBatch made_batch(Tensors batch);
/// Of the payload that made_batch() becomes.
std::uint64_t payload_digest(const MadeBatch& batch);
/// Tensors in the memory that the batch came in; each keeps it. Throws DataError for a description of another release.
Tensors view_batch(const data::Batch& batch);

}  // namespace taas
