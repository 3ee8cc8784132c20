// hook_parity DIR: the C++ half of hook_parity.py, which writes DIR/cases.txt, DIR/initial.bin and DIR/data.bin, runs
// both halves and compares DIR/cpp.<case>.<rank>.bin with DIR/python.<case>.<rank>.bin. Everything is raw float32.
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include "parity_models.hpp"
#include "state_files.hpp"
#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/join.hpp"

namespace parity {
namespace {

using Folder = std::filesystem::path;
using Wrapped = taas::DistributedDataParallel<Model>;
using Hook = std::shared_ptr<taas::CommHook>;

constexpr int kSteps = 10;
constexpr int kBatch = 4;
constexpr double kRate = 0.1;

/// One line of cases.txt.
struct Case {
  std::string name, hook, model;
  double bucket_cap_mb = 0;
  std::string join;    ///< "even", "initial" or "current": what gradients are divided by when inputs are uneven
  std::string option;  ///< "plain", "view", "static" or "no_sync"
};

std::vector<Case> read_cases(const Folder& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  for (Case one; file >> one.name >> one.hook >> one.model >> one.bucket_cap_mb >> one.join >> one.option;)
    cases.push_back(one);
  return cases;
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

/// Trains one case; `data`: (steps, ranks, batch, inputs + label).
class Training {
 public:
  Training(const Case& one, const taas::ProcessGroup& group, const at::Tensor& initial)
      : case_(one),
        rank_(group.rank()),
        module_(make_model(one.model)),
        model_(module_, group, options(one)),
        optimizer_(module_->parameters(), torch::optim::SGDOptions(kRate)),
        averager_(group, 3, 4),
        local_(optimizer_, averager_) {
    load_initial(*module_, initial);
    register_hook(model_, one.hook);
  }

  void run(const at::Tensor& data) {
    if (case_.join == "even") return iterate(data, kSteps);
    taas::join({model_}, [&] { iterate(data, kSteps - 2 * rank_); },
               {.divide_by_initial_world_size = case_.join == "initial"});
  }

  void write(const Folder& folder) const {
    write_state(*module_, folder / ("cpp." + case_.name + "." + std::to_string(rank_) + ".bin"));
  }

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

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: hook_parity DIR\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  at::set_num_threads(1);
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  const auto initial = parity::read_floats(folder / "initial.bin");
  const auto data = parity::read_floats(folder / "data.bin")
                        .view({parity::kSteps, group.world_size(), parity::kBatch, parity::kInputs + 1});
  for (const auto& one : parity::read_cases(folder / "cases.txt")) {
    parity::Training training(one, group, initial);
    training.run(data);
    training.write(folder);
  }
  taas::barrier(group);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
