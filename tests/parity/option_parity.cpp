// option_parity DIR: the C++ half of option_parity.py.
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdlib>
#include <istream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "parity_models.hpp"
#include "parity_program.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"

namespace parity {
namespace {

using Options = taas::DistributedDataParallelOptions;
using Wrapped = taas::DistributedDataParallel<Model>;

constexpr double kRate = 0.1;
constexpr double kSmall = 0.001;  // MiB

Options mixed(at::ScalarType param, std::optional<at::ScalarType> reduce, std::optional<at::ScalarType> buffer = {}) {
  return {.bucket_cap_mb = kSmall, .mixed_precision = taas::MixedPrecision{param, reduce, buffer}};
}

Options mixed_with(Options options, at::ScalarType reduce = at::kFloat) {
  options.mixed_precision = taas::MixedPrecision{at::kBFloat16, reduce, at::kBFloat16};
  return options;
}

/// The table of option_parity.py.
const std::map<std::string, Options>& all_options() {
  static const std::map<std::string, Options> kOptions{
      {"default", {}},
      {"many_buckets", {.bucket_cap_mb = kSmall}},
      {"gloo_alone", {.bucket_cap_mb = kSmall}},
      {"cap_list", {.bucket_cap_mb_list = {0.0005, 0.002, 0.004}}},
      {"bucket_view", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true}},
      {"find_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true}},
      {"no_sink_clone", {.bucket_cap_mb = kSmall, .find_unused_parameters = true}},
      {"static_graph", {.bucket_cap_mb = kSmall, .static_graph = true}},
      {"set_static_graph", {.bucket_cap_mb = kSmall}},
      {"skip_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true, .skip_all_reduce_unused_params = true}},
      {"batched_copy", {.bucket_cap_mb = kSmall, .batched_grad_copy = true}},
      {"batched_copy_view", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true, .batched_grad_copy = true}},
      {"lazy_buckets", {.bucket_cap_mb = kSmall, .lazy_bucket_allocation = true}},
      {"no_sync", {.bucket_cap_mb = kSmall}},
      {"no_sync_view", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true}},
      {"own_buffers", {.broadcast_buffers = false}},
      {"forward_own_buffers", {.forward_sync_buffers = false}},
      {"buffer_hook_before", {}},
      {"buffer_hook_after", {}},
      {"ignored", {}},
      {"delayed", {}},
      {"manual", {.bucket_cap_mb = kSmall}},
      {"other_group", {.bucket_cap_mb = kSmall}},
      {"fewer_ranks", {.bucket_cap_mb = kSmall}},
      {"no_hooks", {}},
      {"mixed", mixed(at::kBFloat16, at::kBFloat16)},
      {"mixed_default", mixed(at::kBFloat16, {})},
      {"mixed_half", mixed(at::kHalf, at::kHalf)},
      {"mixed_full_sum", mixed(at::kBFloat16, at::kFloat)},
      {"mixed_low_sum", mixed(at::kFloat, at::kBFloat16)},
      {"mixed_buffers", mixed(at::kBFloat16, at::kBFloat16, at::kBFloat16)},
      {"mixed_one_bucket", mixed_with({})},
      {"mixed_view", mixed_with({.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true}, at::kBFloat16)},
      {"mixed_static", mixed_with({.bucket_cap_mb = kSmall, .static_graph = true})},
      {"mixed_copy", mixed_with({.bucket_cap_mb = kSmall, .batched_grad_copy = true})},
      {"mixed_lazy", mixed_with({.bucket_cap_mb = kSmall, .lazy_bucket_allocation = true})},
      {"mixed_no_sync", mixed_with({.bucket_cap_mb = kSmall})},
      {"mixed_frozen", mixed_with({.bucket_cap_mb = kSmall})},
      {"mixed_manual", mixed_with({.bucket_cap_mb = kSmall})},
  };
  return kOptions;
}

std::vector<std::string> names_of_last_layer(const Model& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) {
    if (item.key().starts_with("output.")) names.push_back(item.key());
  }
  return names;
}

Options options_of(const std::string& option, const Model& module) {
  auto options = all_options().at(option);
  option == "gloo_alone" ? ::setenv("TAAS_SHARED_MEMORY", "0", 1) : ::unsetenv("TAAS_SHARED_MEMORY");
  if (option == "ignored") options.parameters_and_buffers_to_ignore = names_of_last_layer(module);
  if (option == "delayed") {
    options.delay_all_reduce_named_params = names_of_last_layer(module);
    options.param_to_hook_all_reduce = module.named_parameters()[0].key();
  }
  return options;
}

taas::BufferHook average(const taas::ProcessGroup& group) {
  return [group](const taas::NamedBuffers& buffers) {
    for (auto [name, buffer] : buffers) {
      if (!buffer.is_floating_point()) continue;
      taas::all_reduce(group, buffer);
      buffer.div_(group.world_size());
    }
    return std::vector<c10::intrusive_ptr<c10::ivalue::Future>>();
  };
}

bool uses_branch(const std::string& option, int step, int rank) {
  if (option == "find_unused" || option == "no_sink_clone") return (step + rank) % 3 == 0;
  return option != "skip_unused" && option != "static_graph";
}

/// Without momentum for sparse gradients, which only libtorch's own SGD takes.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Model& module, const std::string& model) {
  if (model.starts_with("sparse")) return std::make_unique<torch::optim::SGD>(parameters_of(module), kRate);
  return std::make_unique<taas::SGD>(parameters_of(module), torch::optim::SGDOptions(kRate).momentum(0.9));
}

class OptionTraining {
 public:
  OptionTraining(std::string option, const std::string& model, const Inputs& inputs)
      : option_(std::move(option)),
        rank_(inputs.group.rank()),
        module_(make_model(model)),
        optimizer_(make_optimizer(*module_, model)) {
    load_initial(*module_, inputs.initial, option_ == "alone" ? 0 : 0.25 * rank_);
    if (option_ != "alone") wrap(inputs.group);
  }

  void run(const at::Tensor& data) {
    for (int step = 0; step < kSteps; ++step) {
      if (!change_model(step)) return;
      const bool accumulates = option_.find("no_sync") != std::string::npos && step % 3 != 2;
      if (accumulates) {
        const auto scope = model_->no_sync();
        backward(data[step][rank_], step);
        continue;
      }
      backward(data[step][rank_], step);
      if (is_manual()) model_->finalize_backward();
      optimizer_->step();
      for (auto& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
    }
  }

  std::shared_ptr<Model> module() const { return module_; }

 private:
  bool is_manual() const { return option_.ends_with("manual"); }

  void wrap(const taas::ProcessGroup& group) {
    if (option_ == "mixed_frozen") module_->parameters().front().set_requires_grad(false);
    model_.emplace(module_, group, options_of(option_, *module_));
    if (option_ == "buffer_hook_before") {
      model_->register_buffer_comm_hook(average(group), taas::BufferHookLocation::kBeforeForward);
    }
    if (option_ == "buffer_hook_after") model_->register_buffer_comm_hook(average(group));
    if (option_ == "no_sink_clone") model_->set_sink_clone(false);
    if (option_ == "set_static_graph") model_->set_static_graph();
    if (is_manual()) model_->require_manual_backward_finalization(true);
  }

  /// False: this rank trains no more.
  bool change_model(int step) {
    if (step != 4) return true;
    if (option_ == "other_group") model_->update_process_group(model_->process_group());
    if (option_ == "no_hooks") model_->remove_autograd_hooks();
    return option_ != "fewer_ranks" || leave_half();
  }

  bool leave_half() {
    const auto all = model_->process_group();
    std::vector<int> members(std::max<std::size_t>(2, static_cast<std::size_t>(all.world_size()) / 2));
    std::iota(members.begin(), members.end(), 0);
    const auto group = taas::new_group(all, members);
    if (group) model_->update_process_group(*group);
    return group.has_value();
  }

  void backward(const at::Tensor& batch, int step) {
    const bool alone = !model_ || (option_ == "no_hooks" && step >= 4);
    const auto inputs = batch.slice(1, 0, kInputs).contiguous();
    const bool more = uses_branch(option_, step, rank_);
    const auto scores = alone ? module_->forward(inputs, more) : (*model_)(inputs, more);
    const auto loss = nn::functional::cross_entropy(scores.to(at::kFloat), batch.select(1, kInputs).to(at::kLong));
    if (alone) return loss.backward();
    model_->backward(loss);
  }

  std::string option_;
  int rank_;
  std::shared_ptr<Model> module_;
  std::optional<Wrapped> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace
}  // namespace parity

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    std::string option, model;
    words >> option >> model;
    const auto training = std::make_shared<parity::OptionTraining>(option, model, inputs);
    training->run(inputs.data);
    // With its wrapper, which in mixed precision gives whole parameters back when it ends: Python's does not.
    return std::shared_ptr<parity::Model>(training, training->module().get());
  });
}
