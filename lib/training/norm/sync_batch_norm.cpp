#include "taas/sync_batch_norm.hpp"

#include <torch/nn/functional/batchnorm.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "taas/error.hpp"
#include "training/norm/sync_norm.hpp"

namespace taas {
namespace {

namespace nn = torch::nn;

/// The same tensor under another handle, where one module takes over those of another.
void take_over(at::Tensor& own, const at::Tensor& other) {
  if (own.defined()) own.set_data(other);
}

template <class BatchNormImpl>
std::shared_ptr<nn::Module> converted_as(const nn::Module& module, const ProcessGroup& group) {
  const auto* batch_norm = module.as<BatchNormImpl>();
  if (!batch_norm) return nullptr;
  auto made = std::make_shared<SyncBatchNormImpl>(batch_norm->options, group);
  made->share(*batch_norm);
  made->train(batch_norm->is_training());
  return made;
}

/// Null: it is no BatchNorm.
std::shared_ptr<SyncBatchNormImpl> converted(const nn::Module& module, const ProcessGroup& group) {
  std::shared_ptr<nn::Module> made = converted_as<nn::BatchNorm1dImpl>(module, group);
  if (!made) made = converted_as<nn::BatchNorm2dImpl>(module, group);
  if (!made) made = converted_as<nn::BatchNorm3dImpl>(module, group);
  return std::dynamic_pointer_cast<SyncBatchNormImpl>(made);
}

bool is_batch_norm(const nn::Module& module) {
  return module.as<nn::BatchNorm1dImpl>() || module.as<nn::BatchNorm2dImpl>() || module.as<nn::BatchNorm3dImpl>();
}

void refuse_batch_norm_within(const nn::Module& module, const std::string& name) {
  for (const auto& item : module.named_modules(name, /*include_self=*/false)) {
    if (is_batch_norm(*item.value()))
      throw InvalidArgument("convert_sync_batchnorm cannot replace " + item.key() + ", a member of the class " +
                            module.name() + ": declare it as taas::SyncBatchNorm there");
  }
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const Options& the_options, std::optional<ProcessGroup> group)
    : NormImplBase(the_options), group_(std::move(group)) {}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features()) return;
  throw InvalidArgument(
      "SyncBatchNorm wants [batch, " + std::to_string(options.num_features()) + ", …], and got " +
      (input.dim() < 2 ? std::to_string(input.dim()) + " dimensions" : std::to_string(input.size(1)) + " channels"));
}

double SyncBatchNormImpl::next_momentum() {
  if (is_training() && num_batches_tracked.defined()) {
    num_batches_tracked += 1;
    if (!options.momentum()) return 1.0 / num_batches_tracked.item<double>();
  }
  return options.momentum().value_or(0.0);
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  const auto momentum = next_momentum();
  if (is_training() && group_ && group_->world_size() > 1)
    return sync_norm(input, weight, bias, {running_mean, running_var, momentum}, options.eps(), *group_);
  return nn::functional::detail::batch_norm(input, running_mean, running_var, weight, bias,
                                            is_training() || !running_mean.defined(), momentum, options.eps());
}

void SyncBatchNormImpl::share_tensors(const at::Tensor& other_weight, const at::Tensor& other_bias,
                                      const at::Tensor& mean, const at::Tensor& variance, const at::Tensor& batches) {
  if (weight.defined()) weight = parameters_["weight"] = other_weight;
  if (bias.defined()) bias = parameters_["bias"] = other_bias;
  take_over(running_mean, mean);
  take_over(running_var, variance);
  take_over(num_batches_tracked, batches);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "taas::SyncBatchNorm(" << options.num_features() << ", eps=" << options.eps()
         << ", momentum=";
  if (options.momentum()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << options.affine() << ", track_running_stats=" << options.track_running_stats() << ")";
}

torch::nn::Sequential convert_sync_batchnorm(const torch::nn::Sequential& module, const ProcessGroup& group) {
  nn::Sequential result;
  const auto names = module->named_children().keys();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& child = *std::next(module->begin(), static_cast<std::ptrdiff_t>(i));
    if (auto made = converted(*child.ptr(), group)) {
      result->push_back(names[i], made);
    } else {
      refuse_batch_norm_within(*child.ptr(), names[i]);
      result->push_back(names[i], child);
    }
  }
  if (!module->is_training()) result->eval();
  return result;
}

void set_sync_batchnorm_group(const torch::nn::Module& module, const ProcessGroup& group) {
  for (const auto& each : module.modules(/*include_self=*/false)) {
    if (auto* norm = each->as<SyncBatchNormImpl>()) norm->set_group(group);
  }
}

}  // namespace taas
