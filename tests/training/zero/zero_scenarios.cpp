#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <functional>
#include <string>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;

constexpr int kZeroSteps = 10;

/// Convolution, LSTM, a scalar, sizes that no number of ranks divides, and a branch that may be left out.
struct MixedNetImpl : torch::nn::Module {
  MixedNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(1, 3, 3));
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(18, 13).batch_first(true)));
    hidden = register_module("hidden", torch::nn::Linear(13, 1031));
    output = register_module("output", torch::nn::Linear(1031, 7));
    extra = register_module("extra", torch::nn::Linear(13, 7));
    scale = register_parameter("scale", torch::ones({}));
  }
  at::Tensor forward(const at::Tensor& images, bool with_extra) {
    auto rows = at::relu(conv->forward(images)).permute({0, 2, 1, 3}).flatten(2);
    auto last = std::get<0>(lstm->forward(rows)).select(1, -1);
    auto scores = output->forward(at::relu(hidden->forward(last))) * scale;
    return with_extra ? scores + extra->forward(last) : scores;
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::LSTM lstm = nullptr;
  torch::nn::Linear hidden = nullptr, output = nullptr, extra = nullptr;
  at::Tensor scale;
};
TORCH_MODULE(MixedNet);

MixedNet same_net() {
  torch::manual_seed(7);
  return {};
}

using Branch = std::function<bool(int step, int rank)>;
bool always(int /*step*/, int /*rank*/) { return true; }

at::Tensor loss_of(const at::Tensor& scores, int step, int rank) {
  auto labels = (at::arange(5) * 3 + step + rank) % 7;
  return torch::nn::functional::cross_entropy(scores, labels);
}

at::Tensor images_of(int step, int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * step + rank + 1));
  return at::randn({5, 1, 8, 8}, generator);
}

template <class Options>
std::vector<OptimizerParamGroup> decayed_weights(const MixedNet& net, const Options& defaults) {
  std::vector<at::Tensor> weights, others;
  for (const auto& parameter : net->parameters()) (parameter.dim() > 1 ? weights : others).push_back(parameter);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(weights, std::make_unique<Options>(Options(defaults).weight_decay(0.05)));
  groups.emplace_back(others);
  return groups;
}

struct Trained {
  std::vector<at::Tensor> parameters;
  c10::IValue state;
};

std::vector<at::Tensor> copies(const MixedNet& net) {
  std::vector<at::Tensor> all;
  for (const auto& parameter : net->parameters()) all.push_back(parameter.detach().clone());
  return all;
}

void change_rate(torch::optim::Optimizer& optimizer, int step) {
  if (step % 4 == 3) {
    for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);
  }
}

struct Setting {
  ZeroOptions zero{};
  Branch branch = always;
  int accumulate = 1;
};

template <class Kind, class Options>
Trained train_whole(const ProcessGroup& group, const Options& defaults, const Setting& setting) {
  auto net = same_net();
  DistributedDataParallel model(
      net, group,
      {.bucket_cap_mb = setting.zero.bucket_cap_mb, .find_unused_parameters = setting.zero.find_unused_parameters});
  Kind optimizer(decayed_weights(net, defaults), defaults, {.fused = setting.zero.fused});
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto backward = [&] {
      loss_of(model(images_of(step, group.rank()), setting.branch(step, group.rank())), step, group.rank()).backward();
    };
    if ((step + 1) % setting.accumulate != 0) {
      auto scope = model.no_sync();
      backward();
      continue;
    }
    backward();
    optimizer.step();
    model.zero_grad();
    change_rate(optimizer, step);
  }
  return {copies(net), optimizer_state(optimizer)};
}

template <class Options>
Trained train_sharded(const ProcessGroup& group, const Options& defaults, const Setting& setting) {
  auto net = same_net();
  std::optional<DistributedDataParallel<MixedNetImpl>> model;
  if (setting.zero.stage == 1) {
    model.emplace(net, group,
                  DistributedDataParallelOptions{.bucket_cap_mb = setting.zero.bucket_cap_mb,
                                                 .find_unused_parameters = setting.zero.find_unused_parameters});
  }
  auto options = setting.zero;
  options.order = net->parameters();
  ZeroOptimizer optimizer(decayed_weights(net, defaults), group, defaults, options);
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto backward = [&] {
      const auto images = images_of(step, group.rank());
      const bool extra = setting.branch(step, group.rank());
      loss_of(model ? (*model)(images, extra) : net->forward(images, extra), step, group.rank()).backward();
    };
    if ((step + 1) % setting.accumulate != 0) {
      if (model) {
        auto scope = model->no_sync();
        backward();
      } else {
        auto scope = optimizer.no_sync();
        backward();
      }
      continue;
    }
    backward();
    optimizer.step();
    optimizer.zero_grad();
    change_rate(optimizer, step);
  }
  return {copies(net), optimizer.consolidated_state()};
}

/// Tensors, numbers and what holds them, to the bit.
bool same_values(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor()) return b.isTensor() && at::equal(a.toTensor(), b.toTensor());
  if (a.isGenericDict()) {
    const auto left = a.toGenericDict(), right = b.toGenericDict();
    if (left.size() != right.size()) return false;
    for (const auto& entry : left) {
      if (!right.contains(entry.key()) || !same_values(entry.value(), right.at(entry.key()))) return false;
    }
    return true;
  }
  if (a.isList()) {
    const auto left = a.toListRef(), right = b.toListRef();
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!same_values(left[i], right[i])) return false;
    }
    return true;
  }
  return a == b;
}

void expect_same(const Trained& whole, const Trained& sharded, const ProcessGroup& group, const std::string& what) {
  double worst = 0;
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    worst = std::max(worst, (whole.parameters[i] - sharded.parameters[i]).abs().max().item<double>());
  }
  expect(worst == 0, what + ": a parameter differs by " + std::to_string(worst * 1e9) + "e-9");
  if (group.rank() == 0) expect(same_values(whole.state, sharded.state), what + ": the consolidated state differs");
}

void compare_all(const ProcessGroup& group, const std::string& what, const Setting& setting) {
  const auto sgd = SGDOptions(0.05).momentum(0.9);
  const AdamOptions adam(1e-2);
  const auto adamw = AdamWOptions(1e-2).amsgrad(true);
  if (!setting.zero.fused) {
    expect_same(train_whole<SGD>(group, sgd, setting), train_sharded(group, sgd, setting), group, what + ", SGD");
  }
  expect_same(train_whole<Adam>(group, adam, setting), train_sharded(group, adam, setting), group, what + ", Adam");
  expect_same(train_whole<AdamW>(group, adamw, setting), train_sharded(group, adamw, setting), group, what + ", AdamW");
}

void zero_parity() {
  at::set_num_threads(1);
  auto group = init({.backend = Backend::kGloo});
  for (const int stage : {1, 2}) {
    const auto name = "stage " + std::to_string(stage);
    compare_all(group, name, {.zero = {.stage = stage}});
    compare_all(group, name + ", fused", {.zero = {.stage = stage, .fused = true}});
    compare_all(group, name + ", small buckets", {.zero = {.stage = stage, .bucket_cap_mb = 0.01}});
    compare_all(group, name + ", accumulation", {.zero = {.stage = stage}, .accumulate = 2});
    compare_all(group, name + ", unused",
                {.zero = {.stage = stage, .bucket_cap_mb = 0.01, .find_unused_parameters = true},
                 .branch = [](int step, int rank) { return step % 3 == 0 && (step + rank) % 2 == 0; }});
  }
}

void zero_refusals() {
  auto group = init({.backend = Backend::kGloo});
  auto net = same_net();
  const auto stage =
      text_of<InvalidArgument>([&] { ZeroOptimizer(net->parameters(), group, AdamOptions(), {.stage = 3}); });
  expect(stage == "stage must be 1 or 2, not 3", stage);
  const auto none = text_of<InvalidArgument>([&] { ZeroOptimizer({at::ones({2})}, group, AdamOptions()); });
  expect(contains(none, "no parameter needs a gradient"), none);
  ZeroOptimizer optimizer(net->parameters(), group, AdamOptions());
  const auto unused =
      text_of<Exception>([&] { loss_of(net->forward(images_of(0, group.rank()), false), 0, 0).backward(); });
  expect(contains(unused, "parameters that got no gradient in this backward on rank") &&
             contains(unused, ": 11, 12 (by their place"),
         unused);
}

void zero_scatter() {
  at::set_num_threads(1);
  auto group = init({.backend = Backend::kGloo});
  const auto adam = AdamOptions(1e-3);
  const auto whole = train_whole<Adam>(group, adam, {});
  const auto sharded = train_sharded(group, adam, {.zero = {.bucket_cap_mb = 0.01, .reduce_scatter = true}});
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const bool good = group.world_size() == 2 ? at::equal(whole.parameters[i], sharded.parameters[i])
                                              : at::allclose(whole.parameters[i], sharded.parameters[i], 1e-3, 1e-5);
    expect(good, "parameter " + std::to_string(i));
  }
}

void zero_clip() {
  auto group = init({.backend = Backend::kGloo});
  auto net = same_net();
  auto other = same_net();
  DistributedDataParallel model(other, group);
  ZeroOptimizer optimizer(net->parameters(), group, SGDOptions(0.1));
  SGD plain(other->parameters(), SGDOptions(0.1));
  loss_of(net->forward(images_of(0, group.rank()), true), 0, group.rank()).backward();
  loss_of(model(images_of(0, group.rank()), true), 0, group.rank()).backward();
  for (const auto& parameter : net->parameters()) expect(!parameter.grad().defined(), "a gradient was kept");
  std::vector<at::Tensor> all;
  for (const auto& parameter : other->parameters()) all.push_back(parameter.grad().flatten());
  const auto norm = at::cat(all).norm().item<double>();
  const auto largest = at::cat(all).abs().max().item<double>();
  expect(optimizer.clip_grad_norm(1e9, std::numeric_limits<double>::infinity()) == largest, "the largest");
  expect(std::abs(optimizer.clip_grad_norm(norm / 2) - norm) < 1e-5 * norm, "the norm");
  expect(std::abs(optimizer.clip_grad_norm(1e9) - norm / 2) < 1e-4 * norm, "the norm once clipped");
}

void zero_reload() {
  auto group = init({.backend = Backend::kGloo});
  const auto defaults = AdamWOptions(1e-2).amsgrad(true);
  auto net = same_net();
  ZeroOptimizer first(decayed_weights(net, defaults), group, defaults);
  for (int step = 0; step < 3; ++step) {
    loss_of(net->forward(images_of(step, group.rank()), true), step, group.rank()).backward();
    first.step();
    first.zero_grad();
  }
  Trained of_each;
  for (int root = 0; root < group.world_size(); ++root) {
    const auto state = first.consolidated_state(root);
    expect((group.rank() == root) != state.isNone(), "only the root has the state");
    if (group.rank() == root) of_each.state = state;
  }
  auto copy = same_net();
  ZeroOptimizer second(decayed_weights(copy, defaults), group, defaults, {.bucket_cap_mb = 0.01});
  second.load_state(of_each.state);
  const auto again = second.consolidated_state();
  if (group.rank() == 0) expect(same_values(again, of_each.state), "what was loaded is what was saved");
  AdamW whole(decayed_weights(copy, defaults), defaults);
  load_optimizer_state(whole, of_each.state);
  expect(same_values(optimizer_state(whole), of_each.state), "an optimizer that is not sharded takes it");
  ZeroOptimizer other(copy->parameters(), group, defaults);
  expect(contains(text_of<CheckpointError>([&] { other.load_state(of_each.state); }), "has 2 parameter groups"),
         "other groups");
}

void zero_memory() {
  auto group = init({.backend = Backend::kGloo});
  auto net = same_net();
  ZeroOptimizer optimizer(net->parameters(), group, AdamOptions());
  expect(optimizer.state_bytes() == 0, "state before the first step");
  loss_of(net->forward(images_of(0, group.rank()), true), 0, group.rank()).backward();
  optimizer.step();
  std::int64_t whole = 0;
  for (const auto& parameter : net->parameters()) whole += parameter.numel() * 2 * 4;
  const double ratio = static_cast<double>(optimizer.state_bytes()) / static_cast<double>(whole);
  expect(ratio < 1.0 / group.world_size() + 0.05, "this rank has " + std::to_string(ratio) + " of the state");
}

}  // namespace

std::map<std::string, Scenario> zero_scenarios() {
  return {{"zero_parity", zero_parity}, {"zero_refusals", zero_refusals}, {"zero_scatter", zero_scatter},
          {"zero_clip", zero_clip},     {"zero_reload", zero_reload},     {"zero_memory", zero_memory}};
}

}  // namespace taas::test
