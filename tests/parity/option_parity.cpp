// option_parity DIR: the C++ half of option_parity.py.
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
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

/// The table of option_parity.py.
const std::map<std::string, Options>& all_options() {
  static const std::map<std::string, Options> kOptions{
      {"default", {}},
      {"many_buckets", {.bucket_cap_mb = kSmall}},
      {"gloo_alone", {.bucket_cap_mb = kSmall}},
      {"cap_list", {.bucket_cap_mb_list = {0.0005, 0.002, 0.004}}},
      {"bucket_view", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true}},
      {"find_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true}},
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
      {"buffer_hook", {}},
      {"ignored", {}},
      {"other_group", {.bucket_cap_mb = kSmall}},
      {"fewer_ranks", {.bucket_cap_mb = kSmall}},
      {"no_hooks", {}},
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
  if (option == "find_unused") return (step + rank) % 3 == 0;
  return option != "skip_unused" && option != "static_graph";
}

/// Without momentum for sparse gradients, which only libtorch's own SGD takes.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Model& module, const std::string& model) {
  if (model.starts_with("sparse")) return std::make_unique<torch::optim::SGD>(module.parameters(), kRate);
  return std::make_unique<taas::SGD>(module.parameters(), torch::optim::SGDOptions(kRate).momentum(0.9));
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
      optimizer_->step();
      for (auto& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
    }
  }

  std::shared_ptr<Model> module() const { return module_; }

 private:
  void wrap(const taas::ProcessGroup& group) {
    model_.emplace(module_, group, options_of(option_, *module_));
    if (option_ == "buffer_hook") model_->register_buffer_comm_hook(average(group));
    if (option_ == "set_static_graph") model_->set_static_graph();
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

/// As a GAN is trained: what the discriminator says of the generator's work trains first the one, then the other.
std::shared_ptr<nn::Module> train_adversaries(const Inputs& inputs) {
  const auto net = std::make_shared<Adversaries>();
  const auto rank = inputs.group.rank();
  load_initial(*net, inputs.initial, 0.25 * rank);
  const Options options{.bucket_cap_mb = kSmall};
  taas::DistributedDataParallel generator(net->generator, inputs.group, options);
  taas::DistributedDataParallel discriminator(net->discriminator, inputs.group, options);
  const auto adam = torch::optim::AdamOptions(2e-3).betas({0.5, 0.999});
  taas::Adam of_generator(net->generator->parameters(), adam), of_discriminator(net->discriminator->parameters(), adam);
  const auto loss = [](const at::Tensor& scores, double wanted) {
    return nn::functional::binary_cross_entropy_with_logits(scores, at::full_like(scores, wanted));
  };
  for (int step = 0; step < kSteps; ++step) {
    const auto batch = inputs.data[step][rank];
    const auto real = batch.slice(1, 0, kInputs).contiguous();
    const auto fake = generator(batch.slice(1, 0, Adversaries::kNoise).contiguous());
    const auto seen = discriminator(real);
    const auto doubted = discriminator(fake.detach());
    const auto told_apart = loss(seen, 1);
    discriminator.backward(told_apart + loss(doubted, 0));
    of_discriminator.step();
    net->zero_grad();
    generator.backward(loss(discriminator(fake), 1));
    of_generator.step();
    net->zero_grad();
  }
  return net;
}

std::shared_ptr<nn::Module> train(const std::string& option, const std::string& model, const Inputs& inputs) {
  if (option == "two_wrappers") return train_adversaries(inputs);
  OptionTraining training(option, model, inputs);
  training.run(inputs.data);
  return training.module();
}

}  // namespace
}  // namespace parity

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    std::string option, model;
    words >> option >> model;
    return parity::train(option, model, inputs);
  });
}
