#include "job.hpp"

#include <string>
#include <utility>

#include "models.hpp"
#include "taas/adadelta.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"

namespace taas::train {
SpreadModel make_spread_model(const std::string& name, const ProcessGroup& group) {
  auto module = make_model(name);
  module->to(group.device());
  auto model = std::make_shared<DistributedDataParallel<TensorModule>>(
      module, group, DistributedDataParallelOptions{.gradient_as_bucket_view = true});
  return {std::move(module), group.device(), [model](const at::Tensor& inputs) { return model->forward(inputs); },
          [model] { model->zero_grad(); }, [model](const at::Tensor& loss) { model->backward(loss); }};
}

ModelOptimizer make_optimizer(const Options& options, const TensorModule& module, bool capturable) {
  const OptimizerKernels kernels{.capturable = capturable};
  const auto hold = [](auto optimizer) {
    auto* recordable = optimizer.get();
    return ModelOptimizer{std::move(optimizer), recordable};
  };
  if (options.learns_digits()) return hold(std::make_unique<Adadelta>(module.parameters(), options.lr, kernels));
  return hold(std::make_unique<SGD>(module.parameters(), torch::optim::SGDOptions(options.lr), kernels));
}

at::Tensor learn_from(SpreadModel& model, torch::optim::Optimizer& optimizer, const BatchSource& source,
                      const at::Tensor& indices) {
  auto [inputs, labels] = source.batch(indices);
  model.zero_grad();
  auto output = model.forward(inputs.to(model.device));
  auto loss = source.loss(output, labels.to(output.device()));
  model.backward(loss);
  optimizer.step();
  return loss;
}

}  // namespace taas::train
