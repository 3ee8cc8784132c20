#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/process_group.hpp"

namespace taas {

/// Makes the optimizer of one rank's parameters: of as many groups as there are in all, of which some may be empty.
using MakeLocalOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::optim::OptimizerParamGroup>)>;

/// One of libtorch's, or of the same form: optimizer_of<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-3)).
template <class Kind, class Options>
MakeLocalOptimizer optimizer_of(Options defaults) {
  return [defaults](auto groups) { return std::make_unique<Kind>(std::move(groups), defaults); };
}

/// An optimizer whose state is spread over the ranks, as Python's torch.distributed.optim.ZeroRedundancyOptimizer (ZeRO
/// stage 1, Rajbhandari et al. 2020, arXiv:1910.02054). Each parameter belongs to one rank, which steps it and sends it
/// to the others; they are dealt as Python deals them, the largest first, each to the rank that has least. Parameters
/// are those of the whole optimizer, to the bit.
///
///     taas::DistributedDataParallel model(net, group);
///     taas::ZeroRedundancyOptimizer optimizer(
///         net->parameters(), group, taas::optimizer_of<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-3)));
///     loss(model(images), labels).backward();
///     optimizer.step();
///     model.zero_grad();
///
/// Averaged gradients, as DistributedDataParallel makes them, have to be on all ranks. Set rates as ever, with
/// param_groups()[i].options().set_lr().
///
/// Throws InvalidArgument for parameters that are not on group.device(), are there twice, or differ between the ranks,
/// for none at all, and for LBFGS, which looks at all parameters at once.
class ZeroRedundancyOptimizer : public torch::optim::Optimizer {
 public:
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;

  ZeroRedundancyOptimizer(const Groups& groups, const ProcessGroup& group, const MakeLocalOptimizer& make);
  ZeroRedundancyOptimizer(std::vector<at::Tensor> parameters, const ProcessGroup& group, const MakeLocalOptimizer& make)
      : ZeroRedundancyOptimizer(Groups{torch::optim::OptimizerParamGroup(std::move(parameters))}, group, make) {}

  /// A collective; the closure is called on each rank. Throws InvalidArgument when add_param_group() was called.
  torch::Tensor step(LossClosure closure = nullptr) override;

  /// All of the state on rank `root` (None on the others), as optimizer_state() of the whole optimizer has it: for
  /// Checkpoint::optimizer, load_optimizer_state() and Python, ZeroRedundancyOptimizer included. The root receives the
  /// state of one rank after the other, so that the last one waits for all others: a collective of large states needs
  /// InitOptions::timeout, or save_files(). CheckpointError: as optimizer_state().
  c10::IValue consolidated_state(int root = 0);
  /// Takes this rank's part of such a state, saved by any number of ranks or by an optimizer that is not sharded. Every
  /// rank gives all of it. Throws CheckpointError, before anything is changed, when groups, parameters or shapes
  /// differ.
  void load_state(const c10::IValue& state);

  /// Each rank writes its part of the state into `folder`, which is made where it is missing: optimizer-<rank>.pt, a
  /// checkpoint with `epoch` that Python reads. Give each save a folder of its own. A collective. Throws
  /// CheckpointError on every rank, which names the rank and the file, when one could not write.
  void save_files(const std::string& folder, std::int64_t epoch);
  /// Takes this rank's part of what any number of ranks have saved there, and returns the epoch. A collective. Throws
  /// CheckpointError on every rank, before anything is changed, when a file is missing, damaged or of another save, or
  /// as load_state() does.
  std::int64_t load_files(const std::string& folder);

  /// That of this rank's parameters.
  torch::optim::Optimizer& local() { return *local_; }

  /// Not for this class: they throw, and name consolidated_state() and load_state().
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Owned {
    at::Tensor parameter;
    std::size_t index = 0;  ///< among all parameters of all groups
  };
  using Parts = std::vector<std::vector<Owned>>;  // by rank, in the order of the groups of its optimizer

  struct Prepared {
    Parts parts;
    std::unique_ptr<torch::optim::Optimizer> local;
  };
  ZeroRedundancyOptimizer(const Groups& groups, const ProcessGroup& group, Prepared prepared);
  static Prepared prepare(const Groups& groups, const ProcessGroup& group, const MakeLocalOptimizer& make);
  [[nodiscard]] const std::vector<Owned>& own() const { return parts_[static_cast<std::size_t>(group_.rank())]; }
  void hand_options_on();
  [[nodiscard]] c10::IValue own_state(StateTensors tensors);
  [[nodiscard]] c10::IValue own_part(const c10::impl::GenericDict& saved, const c10::impl::GenericList& groups) const;
  void take(const c10::IValue& part);

  ProcessGroup group_;
  std::vector<std::size_t> sizes_;  ///< parameters of each group
  Parts parts_;
  std::unique_ptr<torch::optim::Optimizer> local_;
};

}  // namespace taas
