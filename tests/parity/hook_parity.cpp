// hook_parity DIR: the C++ half of hook_parity.py.
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "parity_models.hpp"
#include "parity_program.hpp"
#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/join.hpp"

namespace parity {
namespace {

using Wrapped = taas::DistributedDataParallel<Model>;
using Hook = std::shared_ptr<taas::CommHook>;

constexpr double kRate = 0.1;

/// One line of cases.txt.
struct Case {
  std::string hook, model;
  double bucket_cap_mb = 0;
  std::string join;    ///< "even", "initial" or "current": what gradients are divided by when inputs are uneven
  std::string option;  ///< "plain", "view", "static" or "no_sync"
};

Case read_case(std::istream& words) {
  Case one;
  words >> one.hook >> one.model >> one.bucket_cap_mb >> one.join >> one.option;
  return one;
}

Hook power_sgd(const taas::ProcessGroup& group, const taas::PowerSGDOptions& options) {
  return taas::powerSGD_hook(std::make_shared<taas::PowerSGDState>(group, options));
}

Hook local_sgd(const taas::ProcessGroup& group, bool in_subgroup) {
  return taas::post_localSGD_hook(
      std::make_shared<taas::PostLocalSGDState>(taas::PostLocalSGDState{group, group, 4, in_subgroup}));
}

Hook own_hook(const taas::ProcessGroup& group) {
  return taas::make_comm_hook([group](taas::GradBucket& bucket) {
    auto signs = bucket.buffer().sign();
    taas::all_reduce(group, signs);
    return signs.div_(100.0);
  });
}

Hook stepping_hook(const taas::ProcessGroup& group) {
  return taas::hook_then_optimizer(
      taas::allreduce_hook(group), taas::optimizer_for_each_parameter([](std::vector<at::Tensor> parameters) {
        return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(kRate));
      }));
}

/// By the names of hook_parity.py.
Hook make_hook(const std::string& name, const taas::ProcessGroup& group) {
  static const std::map<std::string, std::function<Hook(const taas::ProcessGroup&)>> kHooks{
      {"allreduce", taas::allreduce_hook},
      {"fp16", taas::fp16_compress_hook},
      {"bf16", taas::bf16_compress_hook},
      {"fp16_wrapper", [](auto& all) { return taas::fp16_compress_wrapper(taas::allreduce_hook(all)); }},
      {"bf16_wrapper", [](auto& all) { return taas::bf16_compress_wrapper(taas::allreduce_hook(all)); }},
      {"pertensor", taas::quantization_pertensor_hook},
      {"perchannel", [](auto& all) { return taas::quantization_perchannel_hook(all); }},
      {"fp16_perchannel",
       [](auto& all) { return taas::fp16_compress_wrapper(taas::quantization_perchannel_hook(all)); }},
      {"noop", [](auto&) { return taas::noop_hook(); }},
      {"powersgd",
       [](auto& all) { return power_sgd(all, {.start_powerSGD_iter = 2, .orthogonalization_epsilon = 1e-8}); }},
      {"powersgd_qr",
       [](auto& all) {
         return power_sgd(
             all,
             {.matrix_approximation_rank = 4, .start_powerSGD_iter = 2, .min_compression_rate = 1, .random_seed = 7});
       }},
      {"powersgd_cold",
       [](auto& all) {
         return power_sgd(all, {.matrix_approximation_rank = 2,
                                .start_powerSGD_iter = 2,
                                .use_error_feedback = false,
                                .warm_start = false,
                                .orthogonalization_epsilon = 1e-8,
                                .batch_tensors_with_same_shape = true});
       }},
      {"fp16_powersgd",
       [](auto& all) {
         return taas::fp16_compress_wrapper(
             power_sgd(all, {.start_powerSGD_iter = 2, .orthogonalization_epsilon = 1e-6}));
       }},
      {"batched_powersgd",
       [](auto& all) {
         return taas::batched_powerSGD_hook(std::make_shared<taas::PowerSGDState>(
             all, taas::PowerSGDOptions{.matrix_approximation_rank = 2, .start_powerSGD_iter = 2}));
       }},
      {"local_sgd", [](auto& all) { return local_sgd(all, false); }},
      {"local_sgd_subgroup", [](auto& all) { return local_sgd(all, true); }},
      {"own", own_hook},
      {"stepping", stepping_hook},
  };
  return kHooks.at(name)(group);
}

void register_hook(Wrapped& model, const std::string& name) {
  if (name == "builtin_allreduce") {
    model.register_builtin_comm_hook(taas::BuiltinCommHook::kAllReduce);
  } else if (name == "builtin_fp16") {
    model.register_builtin_comm_hook(taas::BuiltinCommHook::kFp16Compress);
  } else if (name != "none") {
    model.register_comm_hook(make_hook(name, model.process_group()));
  }
}

class Training {
 public:
  Training(const Case& one, const Inputs& inputs)
      : case_(one),
        rank_(inputs.group.rank()),
        module_(make_model(one.model)),
        model_(module_, inputs.group, options(one)),
        optimizer_(parameters_of(*module_), torch::optim::SGDOptions(kRate)),
        averager_(inputs.group, 3, 4),
        local_(optimizer_, averager_) {
    load_initial(*module_, inputs.initial);
    register_hook(model_, one.hook);
  }

  void run(const at::Tensor& data) {
    if (case_.join == "even") return iterate(data, kSteps);
    taas::join({model_}, [&] { iterate(data, kSteps - 2 * rank_); },
               {.divide_by_initial_world_size = case_.join == "initial"});
  }

  std::shared_ptr<Model> module() const { return module_; }

 private:
  static taas::DistributedDataParallelOptions options(const Case& one) {
    taas::DistributedDataParallelOptions options;
    options.bucket_cap_mb = one.bucket_cap_mb;
    options.find_unused_parameters = one.model == "branched";
    options.gradient_as_bucket_view = one.option == "view";
    options.static_graph = one.option == "static";
    return options;
  }

  void iterate(const at::Tensor& data, int steps) {
    for (int step = 0; step < steps; ++step) {
      if (case_.option == "no_sync" && step % 2 == 0) {
        const auto alone = model_.no_sync();
        backward(data[step][rank_], step);
        continue;
      }
      backward(data[step][rank_], step);
      step_optimizer();
      model_.zero_grad();
    }
  }

  void backward(const at::Tensor& batch, int step) {
    const auto scores = model_(batch.slice(1, 0, kInputs).contiguous(), (step + rank_) % 3 == 0);
    nn::functional::cross_entropy(scores, batch.select(1, kInputs).to(at::kLong)).backward();
  }

  void step_optimizer() {
    if (case_.hook == "stepping") return;
    case_.hook.starts_with("local_sgd") ? local_.step() : static_cast<void>(optimizer_.step());
  }

  Case case_;
  int rank_;
  std::shared_ptr<Model> module_;
  Wrapped model_;
  torch::optim::SGD optimizer_;
  taas::PeriodicModelAverager averager_;
  taas::PostLocalSGDOptimizer local_;
};

}  // namespace
}  // namespace parity

int main(int argc, char** argv) {
  return parity::run_program(argc, argv, [](std::istream& words, const parity::Inputs& inputs) {
    parity::Training training(parity::read_case(words), inputs);
    training.run(inputs.data);
    return training.module();
  });
}
