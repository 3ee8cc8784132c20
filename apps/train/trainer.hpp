#pragma once

#include <c10/core/Event.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "batch_source.hpp"
#include "digits.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "taas/process_group.hpp"
#include "tensor_module.hpp"

namespace taas::train {

/// The folder of --data, or generated digits; the same on every rank. Throws InputError.
Digits load_digits(const Options& options);

/// This rank's order of an epoch in batches. A last batch of one example is left out: batch norm cannot learn from one.
/// Throws InputError when nothing is left.
std::vector<torch::Tensor> split_batches(const torch::Tensor& order, std::int64_t batch_size);

/// How far a training is.
struct Position {
  int epoch = 0;          ///< epochs that are done
  std::int64_t step = 0;  ///< steps of the next one that are done
};

/// Sets the learning rate, which depends on the epoch alone.
void start_epoch(int epoch, const Options& options, torch::optim::Optimizer& optimizer);

/// Sets the seed of dropout, another one for each rank and step: a resumed run goes on as if it had never stopped.
void start_step(const Position& position, const Options& options, const ProcessGroup& group);

/// Whether a checkpoint should be written now and whether the training should end.
struct StopWish {
  bool checkpoint = false;
  int signal = 0;  ///< 0: go on
};

/// Asks all ranks, so that all get the same answer: on the CPU at once, after every step. On a GPU after every eighth,
/// and the answer is taken eight steps later, when it has long been there: no step waits for the GPU.
class StopQuestion {
 public:
  explicit StopQuestion(const ProcessGroup& group);
  /// The answer, where one is due; all ranks call it after the same steps.
  StopWish ask(std::int64_t step);

 private:
  void send();
  StopWish take();

  ProcessGroup group_;
  torch::Tensor wish_;    // int64 (2), on the device
  torch::Tensor answer_;  // on the CPU
  std::optional<c10::Event> arrived_;
};

/// Each rank judges its share of the images, in batches, with the buffers of rank 0, the ones that a checkpoint holds.
Score evaluate(TensorModule& network, const ProcessGroup& group, const BatchSource& source, std::int64_t batch_size);

/// Rank 0 makes the output folder, so that a wrong one is known before the training. Throws InputError.
void prepare_output(const Options& options, const ProcessGroup& group);

/// Rank 0 writes the checkpoint, when there is a folder for it.
void save(const Options& options, const ProcessGroup& group, const TensorModule& network,
          const torch::optim::Optimizer& optimizer, const Position& position);

/// Loads the checkpoint, when there is one to resume from. Within an epoch, a run with another number of ranks goes on
/// after as many samples. Throws CheckpointError when the ranks do not find the same one.
Position resume(const Options& options, const ProcessGroup& group, TensorModule& network,
                torch::optim::Optimizer& optimizer);

/// Whether parameters and buffers are the same on all ranks, to the bit.
bool equal_on_all_ranks(const TensorModule& network, const ProcessGroup& group);

}  // namespace taas::train
