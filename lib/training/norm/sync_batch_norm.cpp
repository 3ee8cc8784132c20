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

/// Null: `module` is no BatchNorm.
const nn::BatchNormOptions* batch_norm_options(const nn::Module& module) {
  if (const auto* norm = module.as<nn::BatchNorm1dImpl>()) return &norm->options;
  if (const auto* norm = module.as<nn::BatchNorm2dImpl>()) return &norm->options;
  if (const auto* norm = module.as<nn::BatchNorm3dImpl>()) return &norm->options;
  return nullptr;
}

void refuse_batch_norm_within(const nn::Module& module, const std::string& name) {
  for (const auto& item : module.named_modules(name, /*include_self=*/false)) {
    if (batch_norm_options(*item.value()))
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

void SyncBatchNormImpl::share(const nn::Module& batch_norm) {
  for (const auto& item : batch_norm.named_parameters(/*recurse=*/false)) parameters_[item.key()] = item.value();
  weight = parameters_["weight"];
  bias = parameters_["bias"];
  const auto own = named_buffers(/*recurse=*/false);
  for (const auto& item : batch_norm.named_buffers(/*recurse=*/false)) own[item.key()].set_data(item.value());
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
    const auto inner = child.ptr();
    if (const auto* options = batch_norm_options(*inner)) {
      auto made = std::make_shared<SyncBatchNormImpl>(*options, group);
      made->share(*inner);
      made->train(inner->is_training());
      result->push_back(names[i], made);
    } else {
      refuse_batch_norm_within(*inner, names[i]);
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
