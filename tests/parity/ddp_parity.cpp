// ddp_parity DIR [cuda]: the C++ half of ddp_parity.py.
// The Python half writes DIR/cases.txt, DIR/initial.bin and DIR/data.bin, runs both halves and compares
// DIR/cpp.<case>.<rank>.bin with DIR/python.<case>.<rank>.bin. Everything is raw float32.
#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "parity_models.hpp"
#include "taas/amp.hpp"
#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/sync_batch_norm.hpp"
#include "taas/zero.hpp"

namespace parity {
namespace {

using Options = taas::DistributedDataParallelOptions;
using Wrapped = taas::DistributedDataParallel<Model>;

constexpr int kSteps = 10;
constexpr int kBatch = 4;
constexpr double kRate = 0.1;
constexpr double kMomentum = 0.9;
constexpr int kGrowthInterval = 3;  // of the scale, in steps
constexpr double kWrong = 0.25;     // times the rank is added to what it begins with: the wrapper has to mend it

/// A line of cases.txt.
struct Case {
  std::string name, option, model;
  Options options;
};

struct Inputs {
  taas::ProcessGroup group;
  at::Tensor initial;  ///< enough numbers for the state of any model
  at::Tensor data;     ///< (steps, ranks, batch, inputs + label)
};

/// The arguments of Python's wrapper, each behind its name; a list begins with its length.
Options read_options(std::istream& words) {
  Options options;
  const std::map<std::string, bool*> switches{{"find_unused_parameters", &options.find_unused_parameters},
                                              {"static_graph", &options.static_graph},
                                              {"gradient_as_bucket_view", &options.gradient_as_bucket_view},
                                              {"broadcast_buffers", &options.broadcast_buffers},
                                              {"init_sync", &options.init_sync},
                                              {"skip_all_reduce_unused_params", &options.skip_all_reduce_unused_params},
                                              {"batched_grad_copy", &options.batched_grad_copy},
                                              {"lazy_bucket_allocation", &options.lazy_bucket_allocation}};
  for (std::string name; words >> name;) {
    if (name == "bucket_cap_mb") {
      words >> options.bucket_cap_mb.emplace();
    } else if (name == "forward_sync_buffers") {
      words >> options.forward_sync_buffers.emplace();
    } else if (name == "bucket_cap_mb_list") {
      std::size_t length = 0;
      words >> length;
      options.bucket_cap_mb_list.resize(length);
      for (auto& cap : options.bucket_cap_mb_list) words >> cap;
    } else {
      words >> *switches.at(name);
    }
  }
  return options;
}

Case read_case(const std::string& line) {
  std::istringstream words(line);
  Case one;
  words >> one.name >> one.option >> one.model;
  one.options = read_options(words);
  return one;
}

at::Tensor read_floats(const std::filesystem::path& path) {
  const auto bytes = std::filesystem::file_size(path);
  auto floats = at::empty({static_cast<std::int64_t>(bytes / sizeof(float))}, at::kFloat);
  std::ifstream(path, std::ios::binary)
      .read(static_cast<char*>(floats.data_ptr()), static_cast<std::streamsize>(bytes));
  return floats;
}

/// Each once, as in Python: libtorch's parameters() has those of a module with two names twice.
std::vector<at::Tensor> parameters_of(const nn::Module& module) {
  std::vector<at::Tensor> once;
  for (const auto& parameter : module.parameters()) {
    const auto same = [&](const at::Tensor& other) { return other.is_same(parameter); };
    if (std::none_of(once.begin(), once.end(), same)) once.push_back(parameter);
  }
  return once;
}

/// Parameters, then floating point buffers: what both halves read and write.
std::vector<at::Tensor> state_of(const nn::Module& module) {
  auto tensors = parameters_of(module);
  for (const auto& buffer : module.buffers()) {
    if (buffer.defined() && buffer.is_floating_point()) tensors.push_back(buffer);
  }
  return tensors;
}

/// `wrong` is added: for a rank whose values the wrapper has to replace.
void load_initial(const nn::Module& module, const at::Tensor& values, double wrong = 0) {
  at::NoGradGuard no_grad;
  std::int64_t at = 0;
  for (auto& tensor : state_of(module)) {
    tensor.copy_(values.slice(0, at, at + tensor.numel()).view_as(tensor)).add_(wrong);
    at += tensor.numel();
  }
}

void write_state(const nn::Module& module, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& tensor : state_of(module)) {
    const auto values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    file.write(static_cast<const char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  }
}

/// The communication hook of the options that are named after one, otherwise null.
std::shared_ptr<taas::CommHook> hook_of(const std::string& option, const taas::ProcessGroup& group) {
  if (option.starts_with("fp16")) return taas::fp16_compress_hook(group);
  if (option.starts_with("bf16")) return taas::bf16_compress_hook(group);
  if (option != "own_hook") return nullptr;
  return taas::make_comm_hook([group](taas::GradBucket& bucket) {
    auto signs = bucket.buffer().sign();
    taas::all_reduce(group, signs);
    return signs.div_(100.0);
  });
}

bool uses_branch(const std::string& option, int step, int rank) {
  if (option.starts_with("find_unused") || option == "zero") return (step + rank) % 3 == 0;
  return option != "skip_unused" && !option.starts_with("static_graph");
}

/// Without momentum for sparse gradients, which do not go with it, and for parameters of 16 bits, where libtorch's SGD
/// rounds otherwise than Python's.
torch::optim::SGDOptions sgd_options(const std::string& model) {
  return torch::optim::SGDOptions(kRate).momentum(model == "sparse" || model == "tied" ? 0 : kMomentum);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Case& one, const std::vector<at::Tensor>& parameters,
                                                        const taas::ProcessGroup& group) {
  const auto options = sgd_options(one.model);
  if (one.option != "zero") return std::make_unique<torch::optim::SGD>(parameters, options);
  return std::make_unique<taas::ZeroRedundancyOptimizer>(parameters, group,
                                                         taas::optimizer_of<torch::optim::SGD>(options));
}

at::Tensor loss_of(Wrapped& model, const at::Tensor& batch, bool more, bool mixed) {
  const taas::Autocast autocast(batch.device().type(), {.enabled = mixed});
  const auto scores = model(batch.slice(1, 0, kInputs).contiguous(), more);
  return nn::functional::cross_entropy(scores.to(at::kFloat), batch.select(1, kInputs).to(at::kLong));
}

/// On `group`, with the data and the initial values of this rank among all.
std::shared_ptr<Model> train(const Case& one, const Inputs& inputs, const taas::ProcessGroup& group) {
  const int rank = inputs.group.rank();
  const auto module = make_model(one.model);
  taas::set_sync_batchnorm_group(*module, group);
  load_initial(*module, inputs.initial, kWrong * rank);
  module->to(group.device());
  Wrapped model(module, group, one.options);
  if (const auto hook = hook_of(one.option, group)) model.register_comm_hook(hook);
  const auto optimizer = make_optimizer(one, parameters_of(*module), group);
  const bool mixed = one.option == "amp";
  taas::GradScaler scaler({.growth_interval = kGrowthInterval, .enabled = mixed});
  for (int step = 0; step < kSteps; ++step) {
    const auto batch = inputs.data[step][rank].to(group.device());
    const bool more = uses_branch(one.option, step, rank);
    if (one.option.find("no_sync") != std::string::npos && step % 3 != 2) {
      const auto scope = model.no_sync();
      model.backward(loss_of(model, batch, more, mixed));
      continue;
    }
    model.backward(scaler.scale(loss_of(model, batch, more, mixed)));
    scaler.step(*optimizer);
    scaler.update();
    model.zero_grad();
  }
  return module;
}

/// Ranks 0 and 1, ranks 2 and 3, or who is left of them, each pair with a model of its own.
std::shared_ptr<Model> train_in_pairs(Case one, const Inputs& inputs) {
  const int pair = inputs.group.rank() / 2;
  const auto group = taas::split(inputs.group, pair);
  if (pair != 0) one.model = "recurrent";
  return train(one, inputs, group.value());
}

/// The discriminator learns from numbers of the data and from made ones, then the generator through it.
std::shared_ptr<Gan> train_gan(const Options& options, const Inputs& inputs) {
  const int rank = inputs.group.rank();
  const auto gan = std::make_shared<Gan>();
  load_initial(*gan, inputs.initial, kWrong * rank);
  const auto device = inputs.group.device();
  gan->to(device);
  taas::DistributedDataParallel generator(gan->generator, inputs.group, options);
  taas::DistributedDataParallel discriminator(gan->discriminator, inputs.group, options);
  const auto sgd = torch::optim::SGDOptions(kRate).momentum(kMomentum);
  torch::optim::SGD generator_sgd(generator.parameters(), sgd), discriminator_sgd(discriminator.parameters(), sgd);
  const auto loss = [&](const at::Tensor& numbers, double truth) {
    const auto scores = discriminator(numbers);
    return nn::functional::binary_cross_entropy_with_logits(scores, at::full_like(scores, truth));
  };
  for (int step = 0; step < kSteps; ++step) {
    const auto real = inputs.data[step][rank].slice(1, 0, kInputs).contiguous().to(device);
    const auto noise = inputs.data[(step + 1) % kSteps][rank].slice(1, 0, Gan::kNoise).contiguous().to(device);
    const auto fake = generator(noise);
    discriminator.zero_grad();
    loss(real, 1).backward();
    loss(fake.detach(), 0).backward();
    discriminator_sgd.step();
    generator.zero_grad();
    loss(fake, 1).backward();
    generator_sgd.step();
  }
  return gan;
}

std::shared_ptr<nn::Module> train_case(const Case& one, const Inputs& inputs) {
  ::setenv("TAAS_SHARED_MEMORY", one.option == "gloo_alone" ? "0" : "1", 1);
  if (one.option == "gan") return train_gan(one.options, inputs);
  if (one.option == "sub_groups") return train_in_pairs(one, inputs);
  return train(one, inputs, inputs.group);
}

}  // namespace

void train_all(const std::filesystem::path& folder, taas::Backend backend) {
  at::set_num_threads(1);
  const auto group = taas::init({.backend = backend});
  const Inputs inputs{group, read_floats(folder / "initial.bin"),
                      read_floats(folder / "data.bin").view({kSteps, group.world_size(), kBatch, -1})};
  std::ifstream cases(folder / "cases.txt");
  for (std::string line; std::getline(cases, line);) {
    const auto one = read_case(line);
    write_state(*train_case(one, inputs), folder / ("cpp." + one.name + "." + std::to_string(group.rank()) + ".bin"));
  }
  taas::barrier(group);
}

}  // namespace parity

int main(int argc, char** argv) try {
  const bool on_gpu = argc == 3 && std::string(argv[2]) == "cuda";
  if (argc != 2 && !on_gpu) {
    std::cerr << "usage: " << argv[0] << " DIR [cuda]\n";
    return 2;
  }
  parity::train_all(argv[1], on_gpu ? taas::Backend::kNccl : taas::Backend::kGloo);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
