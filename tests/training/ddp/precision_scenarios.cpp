#include <torch/nn/module.h>

#include <memory>
#include <optional>

#include "../group/scenario_tensors.hpp"
#include "../rank_scenarios.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/join.hpp"

namespace taas::test {
namespace {

constexpr auto kLow = at::kBFloat16;
constexpr double kFine = 1.0 + 1.0 / 1024;  // float32 has it, bfloat16 rounds it to 1

/// y = w·x + frozen·x, and a parameter that a wrapper may ignore or a loss may leave out.
struct MixedNetImpl : torch::nn::Module {
  at::Tensor w = register_parameter("w", at::full({3}, kFine));
  at::Tensor frozen = register_parameter("frozen", at::full({3}, kFine), /*requires_grad=*/false);
  at::Tensor other = register_parameter("other", at::full({3}, kFine));
  at::Tensor mean = register_buffer("mean", at::full({2}, kFine));
  at::Tensor count = register_buffer("count", at::full({2}, 300, at::kLong));
  at::ScalarType type_of_input = at::kDouble, type_of_w = at::kDouble, type_of_frozen = at::kDouble;

  at::Tensor forward(const at::Tensor& x, bool all) {
    type_of_input = x.scalar_type();
    type_of_w = w.scalar_type();
    type_of_frozen = frozen.scalar_type();
    const auto y = ((w + frozen) * x).sum();
    return all ? y + (other.to(x.scalar_type()) * x).sum() : y;
  }
};

std::shared_ptr<MixedNetImpl> make_mixed_net() {
  auto net = std::make_shared<MixedNetImpl>();
  net->to(group_device);
  return net;
}

at::Tensor three(double value) { return at::full({3}, value, here()); }

DistributedDataParallelOptions low_options(std::optional<at::ScalarType> reduce = std::nullopt) {
  return {.mixed_precision = MixedPrecision{.param_dtype = kLow, .reduce_dtype = reduce}};
}

void expect_full(const MixedNetImpl& net, const std::string& when) {
  for (const auto& item : net.named_parameters()) {
    const auto& value = item.value();
    expect(value.scalar_type() == at::kFloat && at::equal(value, three(kFine)), item.key() + " " + when);
    if (value.grad().defined()) expect(value.grad().scalar_type() == at::kFloat, item.key() + ".grad " + when);
  }
}

/// What forward sees, and what the optimizer and a checkpoint see afterwards.
void precision_of_parameters() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  DistributedDataParallel model(net, group, low_options());
  expect_full(*net, "after construction");
  for (int step = 0; step < 3; ++step) {
    model.zero_grad();
    const auto y = model(three(1.0 + group.rank()), true);
    expect(net->type_of_input == kLow && net->type_of_w == kLow && net->type_of_frozen == kLow, "types in forward");
    expect(y.scalar_type() == kLow, "type of the output");
    model.backward(y);
    expect_full(*net, "after backward");
    const auto average = three((group.world_size() + 1) / 2.0);
    expect(at::equal(net->w.grad(), average), "the average of gradients");
  }
}

/// Evaluation needs no backward to give the values back, also between forward and backward of a training step.
void precision_in_evaluation() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  DistributedDataParallel model(net, group, low_options());
  const auto evaluate = [&] {
    const at::NoGradGuard no_grad;
    model(three(1), true);
    expect(net->type_of_w == kLow, "type in evaluation");
  };
  evaluate();
  expect_full(*net, "after evaluation");
  const auto y = model(three(1), true);
  evaluate();
  model.backward(y);
  expect_full(*net, "after backward");
  { const auto never = model(three(1), true); }
  model.backward(model(three(1), true));
  expect_full(*net, "after a backward for the second of two forwards");
}

/// The sum's type alone: 1 + 1/1024 and as much on the other rank become 2, and 1 on average.
void precision_of_the_sum() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  DistributedDataParallel model(net, group, {.mixed_precision = MixedPrecision{.reduce_dtype = kLow}});
  for (int step = 0; step < 2; ++step) {
    model.zero_grad();
    model.backward(model(three(kFine), true));
    expect(net->type_of_input == at::kFloat && net->type_of_w == at::kFloat, "types in forward");
    expect_full(*net, "after backward");
    expect(at::equal(net->w.grad(), three(1)), "a gradient of 16 bits");
  }
}

void precision_of_buffers() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  const auto buffer = net->mean;
  DistributedDataParallel model(net, group, {.mixed_precision = MixedPrecision{.buffer_dtype = kLow}});
  model.backward(model(three(1), true));
  expect(buffer.scalar_type() == kLow && net->mean.is_same(buffer), "the same buffer of 16 bits");
  expect(net->count.scalar_type() == at::kLong && net->count[0].item<int>() == 300, "an integer buffer");
}

/// Gradients of no_sync are of 16 bits until they are reduced; ignored parameters stay as they are.
void precision_of_accumulated_gradients() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  auto options = low_options(at::kFloat);
  options.parameters_and_buffers_to_ignore = {"other"};
  DistributedDataParallel model(net, group, options);
  for (int step = 0; step < 2; ++step) {
    model.zero_grad();
    {
      const auto scope = model.no_sync();
      model.backward(model(three(1.0 + group.rank()), true));
      expect(net->w.grad().scalar_type() == kLow && net->other.scalar_type() == at::kFloat, "types in no_sync");
    }
    model.backward(model(three(1.0 + group.rank()), true));
    expect_full(*net, "after the backward that reduces");
    expect(at::equal(net->w.grad(), three(group.world_size() + 1.0)), "the average of two steps");
    expect(at::equal(net->other.grad(), three(2.0 * (1 + group.rank()))), "the gradient of this rank");
  }
}

/// Also one that gets its gradient from the other ranks alone is of the parameter's type.
void precision_of_unused_parameters() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  auto options = low_options(at::kHalf);
  options.static_graph = true;
  DistributedDataParallel model(net, group, options);
  for (int step = 0; step < 3; ++step) {
    model.zero_grad();
    model.backward(model(three(1), group.rank() == 0));
    expect_full(*net, "after backward");
    expect(at::equal(net->other.grad(), three(1.0 / group.world_size())), "the gradient of rank 0");
  }
}

/// The module outlives its wrapper.
void precision_after_the_wrapper() {
  const auto group = join_as_asked();
  const auto net = make_mixed_net();
  {
    DistributedDataParallel model(net, group, low_options());
    const auto y = model(three(1), true);
  }
  expect_full(*net, "without a wrapper");
}

void refused_precision() {
  const auto group = join_as_asked();
  const auto refusal = [&](DistributedDataParallelOptions options) {
    if (!options.mixed_precision) options.mixed_precision = MixedPrecision{.param_dtype = kLow};
    return text_of<InvalidArgument>([&] { DistributedDataParallel model(make_mixed_net(), group, options); });
  };
  auto text = refusal({.find_unused_parameters = true});
  expect(contains(text, "mixed_precision and find_unused_parameters") && contains(text, "static_graph"), text);
  text = refusal({.delay_all_reduce_named_params = {"other"}, .param_to_hook_all_reduce = "w"});
  expect(contains(text, "mixed_precision and delay_all_reduce_named_params"), text);
  text = refusal({.mixed_precision = MixedPrecision{.reduce_dtype = at::kInt}});
  expect(contains(text, "mixed_precision.reduce_dtype") && contains(text, "not Int"), text);

  DistributedDataParallel model(make_mixed_net(), group, low_options());
  text = text_of<InvalidArgument>([&] { model.register_comm_hook(allreduce_hook(group)); });
  expect(contains(text, "a hook of its own"), text);
  text = text_of<InvalidArgument>([&] { model.register_builtin_comm_hook(BuiltinCommHook::kAllReduce); });
  expect(contains(text, "a hook of its own"), text);
  text = text_of<InvalidArgument>([&] { model.remove_autograd_hooks(); });
  expect(contains(text, "needs the hooks of autograd"), text);
  text = text_of<InvalidArgument>([&] { taas::join({model}, [] {}); });
  expect(contains(text, "does not go together with a join"), text);
}

}  // namespace

std::map<std::string, Scenario> precision_scenarios() {
  return {{"precision_of_parameters", precision_of_parameters},
          {"precision_in_evaluation", precision_in_evaluation},
          {"precision_of_the_sum", precision_of_the_sum},
          {"precision_of_buffers", precision_of_buffers},
          {"precision_of_accumulated_gradients", precision_of_accumulated_gradients},
          {"precision_of_unused_parameters", precision_of_unused_parameters},
          {"precision_after_the_wrapper", precision_after_the_wrapper},
          {"refused_precision", refused_precision}};
}

}  // namespace taas::test
