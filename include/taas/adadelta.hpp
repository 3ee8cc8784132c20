#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace taas {

/// The defaults are Python's.
struct AdadeltaOptions : torch::optim::OptimizerCloneableOptions<AdadeltaOptions> {
  // NOLINTNEXTLINE(google-explicit-constructor): as torch's own optimizers have it
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1.0;
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  [[nodiscard]] double get_lr() const override { return lr(); }
  void set_lr(double rate) override { lr(rate); }
};

/// What the optimizer remembers of one parameter.
struct AdadeltaParamState : torch::optim::OptimizerCloneableParamState<AdadeltaParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(torch::Tensor, square_avg);
  TORCH_ARG(torch::Tensor, acc_delta);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Adadelta (Zeiler 2012, arXiv:1212.5701), which libtorch lacks: the same operations in the same order as Python's
/// torch.optim.Adadelta with foreach=False, so the same parameters to the bit. Dense real gradients only: a sparse one
/// is an InvalidArgument.
class Adadelta : public torch::optim::Optimizer {
 public:
  /// Throws InvalidArgument for a negative lr, eps or weight_decay or a rho outside 0…1.
  explicit Adadelta(const std::vector<torch::optim::OptimizerParamGroup>& groups, const AdadeltaOptions& defaults = {});
  explicit Adadelta(std::vector<torch::Tensor> parameters, const AdadeltaOptions& defaults = {})
      : Adadelta({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace taas
