#include "job.hpp"

#include <string>
#include <utility>
#include <vector>

#include "input_error.hpp"
#include "models.hpp"
#include "resnet50.hpp"
#include "taas/adadelta.hpp"
#include "taas/data_parallel.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"

namespace taas::train {
namespace {

/// All GPUs or the CPU once; or so many GPUs, or the CPU so many times.
std::vector<c10::Device> devices_for(const Options& options) {
  auto devices = visible_devices();
  if (options.devices == 0) return devices;
  if (devices.front().is_cpu()) return {options.devices, devices.front()};
  if (options.devices > devices.size()) {
    throw InputError("--devices " + std::to_string(options.devices) + ": this process sees " +
                     std::to_string(devices.size()) + (devices.size() == 1 ? " GPU" : " GPUs"));
  }
  devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(options.devices), devices.end());
  return devices;
}

SpreadModel over_ranks(std::shared_ptr<TensorModule> module, const ProcessGroup& group) {
  module->to(group.device());
  auto model = std::make_shared<DistributedDataParallel<TensorModule>>(
      module, group, DistributedDataParallelOptions{.gradient_as_bucket_view = true});
  return {std::move(module), group.device(), [model](const at::Tensor& inputs) { return model->forward(inputs); },
          [model] { model->zero_grad(); }};
}

SpreadModel over_devices(const std::shared_ptr<TensorModule>& module, const Options& options) {
  const auto devices = devices_for(options);
  module->to(devices.front());
  auto model = std::make_shared<DataParallel<TensorModule>>(module, devices,
                                                            [name = options.model] { return make_model(name); });
  return {module, devices.front(), [model](const at::Tensor& inputs) { return model->forward(inputs); },
          [module] { module->zero_grad(); }};
}

/// On two GPUs; where there are fewer, on the CPU twice.
SpreadModel cut_in_two(const std::shared_ptr<TensorModule>& module, const Options& options) {
  auto devices = visible_devices();
  if (devices.size() < 2) devices.assign(2, c10::kCPU);
  const auto network = std::dynamic_pointer_cast<ResNet50Impl>(module);
  network->cut(devices[0], devices[1], options.parallel == "pipeline" ? options.split_sizes.front() : 0);
  return {module, devices[0], [module](const at::Tensor& inputs) { return module->forward(inputs); },
          [module] { module->zero_grad(); }};
}

}  // namespace

SpreadModel make_spread_model(const Options& options, const ProcessGroup& group) {
  auto module = make_model(options.model);
  if (options.parallel == "dp") return over_devices(module, options);
  if (options.cuts_model()) return cut_in_two(module, options);
  return over_ranks(std::move(module), group);
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
  loss.backward();
  optimizer.step();
  return loss;
}

}  // namespace taas::train
