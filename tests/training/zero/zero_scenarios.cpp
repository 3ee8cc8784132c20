#include <ATen/ATen.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/zero.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

constexpr int kZeroSteps = 6;

/// Parameters of several sizes, none of which is most of all, and a scalar.
struct UnevenNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(1, 3, 3));
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(108, 31));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(31, 107));
  at::Tensor scale = register_parameter("scale", torch::ones({}));

  at::Tensor forward(const at::Tensor& images) {
    return output(at::relu(hidden(at::relu(conv(images)).flatten(1)))) * scale;
  }
};
TORCH_MODULE(UnevenNet);

UnevenNet same_net() {
  torch::manual_seed(7);
  UnevenNet net;
  net->to(group_device);
  return net;
}

/// Other images in each step and on each rank.
at::Tensor zero_loss(DistributedDataParallel<UnevenNetImpl>& model, int step, int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * step + rank + 1));
  const auto labels = (at::arange(5, here(at::kLong)) * 3 + step + rank) % 7;
  return at::cross_entropy_loss(model(at::randn({5, 1, 8, 8}, generator).to(group_device)), labels);
}

/// Of Adam. On a GPU, where gradients may differ in their last bit, one that is almost 0 must not decide where a step
/// goes.
double eps_here() { return group_device.is_cuda() ? 1e-4 : 1e-8; }

template <class Options>
std::vector<torch::optim::OptimizerParamGroup> decayed_weights(const UnevenNet& net, const Options& defaults) {
  std::vector<at::Tensor> weights, others;
  for (const auto& parameter : net->parameters()) (parameter.dim() > 1 ? weights : others).push_back(parameter);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(weights, std::make_unique<Options>(Options(defaults).weight_decay(0.05)));
  groups.emplace_back(others);
  return groups;
}

std::vector<at::Tensor> copies_of(const UnevenNet& net) {
  std::vector<at::Tensor> all;
  for (const auto& parameter : net->parameters()) all.push_back(parameter.detach().clone());
  return all;
}

/// Tensors, numbers and what holds them.
bool same_values(const c10::IValue& a, const c10::IValue& b, SameTensors same = are_equal) {
  if (a.isTensor()) return b.isTensor() && same(a.toTensor(), b.toTensor());
  if (a.isGenericDict()) {
    const auto left = a.toGenericDict(), right = b.toGenericDict();
    if (left.size() != right.size()) return false;
    for (const auto& entry : left) {
      if (!right.contains(entry.key()) || !same_values(entry.value(), right.at(entry.key()), same)) return false;
    }
    return true;
  }
  if (a.isList()) {
    const auto left = a.toListRef(), right = b.toListRef();
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!same_values(left[i], right[i], same)) return false;
    }
    return true;
  }
  return a == b;
}

struct Trained {
  std::vector<at::Tensor> parameters;
  c10::IValue state;
};

/// Half of the steps give step() a closure, and a rate changes on the way and at the end.
void train_with(const ProcessGroup& group, DistributedDataParallel<UnevenNetImpl>& model,
                torch::optim::Optimizer& optimizer) {
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto backward = [&] {
      model.zero_grad();
      auto loss = zero_loss(model, step, group.rank());
      loss.backward();
      return loss;
    };
    if (step % 2 == 0) {
      backward();
      optimizer.step();
    } else {
      expect(optimizer.step(backward).defined(), "step() returns the closure's loss");
    }
    if (step == 3 || step == kZeroSteps - 1) optimizer.param_groups()[1].options().set_lr(0.003 / step);
  }
}

template <class Kind, class Options>
Trained train_whole(const ProcessGroup& group, const Options& defaults) {
  auto net = same_net();
  DistributedDataParallel model(net, group);
  Kind optimizer(decayed_weights(net, defaults), defaults);
  train_with(group, model, optimizer);
  return {copies_of(net), optimizer_state(optimizer)};
}

template <class Kind, class Options>
Trained train_sharded(const ProcessGroup& group, const Options& defaults) {
  auto net = same_net();
  DistributedDataParallel model(net, group);
  ZeroRedundancyOptimizer optimizer(decayed_weights(net, defaults), group, optimizer_of<Kind>(defaults));
  train_with(group, model, optimizer);
  return {copies_of(net), optimizer.consolidated_state()};
}

template <class Kind, class Options>
void compare(const ProcessGroup& group, const std::string& what, const Options& defaults) {
  const auto whole = train_whole<Kind>(group, defaults);
  const auto sharded = train_sharded<Kind>(group, defaults);
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    expect(same_here()(sharded.parameters[i], whole.parameters[i]), what + ": parameter " + std::to_string(i));
  }
  if (group.rank() != 0) return expect(sharded.state.isNone(), what + ": the root alone has the state");
  expect(same_values(whole.state, sharded.state, same_here()), what + ": the consolidated state differs");
}

void zero_parity() {
  at::set_num_threads(1);
  auto group = join_as_asked();
  compare<torch::optim::SGD>(group, "SGD", SGDOptions(0.05).momentum(0.9));
  compare<torch::optim::Adam>(group, "Adam", AdamOptions(1e-2).eps(eps_here()));
  compare<torch::optim::AdamW>(group, "AdamW", AdamWOptions(1e-2).eps(eps_here()).amsgrad(true));
}

void zero_refusals() {
  auto group = join_as_asked();
  auto net = same_net();
  const auto refusal = [&](std::vector<at::Tensor> parameters, const MakeLocalOptimizer& make) {
    return text_of<InvalidArgument>([&] { ZeroRedundancyOptimizer(std::move(parameters), group, make); });
  };
  const auto adam = optimizer_of<torch::optim::Adam>(AdamOptions());
  expect(refusal({}, adam) == "there is no parameter: nothing to optimize", "no parameters");
  const auto one = at::ones({2}, here());
  expect(refusal({one, one}, adam) == "parameter 1 is there twice", "a parameter twice");
  const auto lbfgs = optimizer_of<torch::optim::LBFGS>(torch::optim::LBFGSOptions());
  expect(contains(refusal(net->parameters(), lbfgs), "LBFGS looks at all parameters at once"), "LBFGS");
  if (group.world_size() > 1) {
    const auto own = at::ones({group.rank() + 1}, here());
    expect(contains(refusal({own}, adam), "parameter 0"), "parameters that differ between ranks");
  }
  ZeroRedundancyOptimizer optimizer(net->parameters(), group, adam);
  optimizer.add_param_group({{at::ones({2}, here())}});
  expect(contains(text_of<InvalidArgument>([&] { optimizer.step(); }), "parameters were added"), "an added group");
  torch::serialize::OutputArchive archive;
  expect(contains(text_of<Exception>([&] { optimizer.save(archive); }), "consolidated_state()"), "save()");
}

/// Of AdamW with amsgrad over two groups, three steps on.
ZeroRedundancyOptimizer stepped(const UnevenNet& net, const ProcessGroup& group) {
  const auto defaults = AdamWOptions(1e-2).amsgrad(true);
  DistributedDataParallel model(net, group);
  ZeroRedundancyOptimizer optimizer(decayed_weights(net, defaults), group, optimizer_of<torch::optim::AdamW>(defaults));
  for (int step = 0; step < 3; ++step) {
    zero_loss(model, step, group.rank()).backward();
    optimizer.step();
    model.zero_grad();
  }
  return optimizer;
}

ZeroRedundancyOptimizer fresh(const UnevenNet& net, const ProcessGroup& group) {
  const auto defaults = AdamWOptions(0.5).amsgrad(true);
  return {decayed_weights(net, defaults), group, optimizer_of<torch::optim::AdamW>(defaults)};
}

void zero_reload() {
  auto group = join_as_asked();
  auto net = same_net();
  auto first = stepped(net, group);
  c10::IValue of_each;
  for (int root = 0; root < group.world_size(); ++root) {
    const auto state = first.consolidated_state(root);
    expect((group.rank() == root) != state.isNone(), "only the root has the state");
    if (group.rank() == root) of_each = state;
  }
  auto copy = same_net();
  auto second = fresh(copy, group);
  second.load_state(of_each);
  expect(second.param_groups()[0].options().get_lr() == 1e-2, "the rate is that of the state");
  const auto again = second.consolidated_state();
  if (group.rank() == 0) expect(same_values(again, of_each), "what was loaded is what was saved");
  for (const auto& parameter : copy->parameters()) parameter.mutable_grad() = at::ones_like(parameter);
  second.step();
  if (group.rank() == 0) expect(same_values(again, of_each), "a step has changed the state that was loaded");
  torch::optim::AdamW whole(decayed_weights(copy, AdamWOptions(1e-2)), AdamWOptions(1e-2));
  load_optimizer_state(whole, of_each);
  expect(same_values(optimizer_state(whole), of_each), "an optimizer that is not sharded takes it");
  ZeroRedundancyOptimizer other(copy->parameters(), group, optimizer_of<torch::optim::AdamW>(AdamWOptions()));
  expect(contains(text_of<CheckpointError>([&] { other.load_state(of_each); }), "has 2 parameter groups"),
         "other groups");
}

void zero_files() {
  namespace fs = std::filesystem;
  auto group = join_as_asked();
  const auto folder = (fs::temp_directory_path() / ("taas-zero-files-" + std::to_string(::getppid()))).string();
  auto net = same_net();
  auto first = stepped(net, group);
  first.save_files(folder, 7);
  auto second = fresh(same_net(), group);
  expect(second.load_files(folder) == 7, "the epoch");
  const auto saved = first.consolidated_state(), loaded = second.consolidated_state();
  if (group.rank() == 0) expect(same_values(loaded, saved), "what was loaded is what was saved");

  const auto last = group.world_size() - 1;
  const auto path = (fs::path(folder) / ("optimizer-" + std::to_string(last) + ".pt")).string();
  const auto refusal = [&](const std::function<void()>& spoil) {
    barrier(group);
    if (group.rank() == 0) spoil();
    barrier(group);
    return text_of<CheckpointError>([&] { second.load_files(folder); });
  };
  if (last > 0) {
    const auto other = refusal([&] {
      auto file = load_checkpoint(path);
      file.extra["save"] = "another";
      save_checkpoint(path, file);
    });
    expect(contains(other, path + " is of another save than"), other);
  }
  const auto damaged = refusal([&] { std::ofstream(path) << "half"; });
  expect(contains(damaged, "rank 0: ") && contains(damaged, path), damaged);
  const auto missing = refusal([&] { fs::remove(path); });
  expect(contains(missing, path), missing);
  const auto unchanged = second.consolidated_state();
  if (group.rank() == 0) expect(same_values(unchanged, saved), "a load that failed has changed something");
  const auto place = group.rank() == last ? "/dev/null/here" : folder;
  const auto failed = text_of<CheckpointError>([&] { first.save_files(place, 8); });
  expect(contains(failed, "rank " + std::to_string(last) + ": ") && contains(failed, "/dev/null/here"), failed);
  if (group.rank() == 0) fs::remove_all(folder);
}

void zero_memory() {
  auto group = join_as_asked();
  auto net = same_net();
  DistributedDataParallel model(net, group);
  ZeroRedundancyOptimizer optimizer(net->parameters(), group, optimizer_of<torch::optim::Adam>(AdamOptions()));
  expect(optimizer.local().state().empty(), "state before the first step");
  zero_loss(model, 0, group.rank()).backward();
  optimizer.step();
  std::int64_t whole = 0, largest = 0, own = 0;
  for (const auto& parameter : net->parameters()) {
    whole += parameter.numel();
    largest = std::max(largest, parameter.numel());
  }
  for (const auto& parameter : optimizer.local().param_groups()[0].params()) own += parameter.numel();
  expect(own <= whole / group.world_size() + largest, "this rank has the state of " + std::to_string(own) + " numbers");
  auto all = at::scalar_tensor(own, here(at::kLong));
  all_reduce(group, all);
  expect(all.item<std::int64_t>() == whole, "each parameter has one owner");
}

}  // namespace

std::map<std::string, Scenario> zero_scenarios() {
  return {{"zero_parity", zero_parity},
          {"zero_refusals", zero_refusals},
          {"zero_reload", zero_reload},
          {"zero_files", zero_files},
          {"zero_memory", zero_memory}};
}

}  // namespace taas::test
