#include <torch/nn/modules/linear.h>

#include <memory>

#include "../rank_scenarios.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"

namespace taas::test {
namespace {

using WrapperOptions = DistributedDataParallelOptions;

/// y = a·x + b·x, with `b` only when asked for.
struct PairImpl : torch::nn::Module {
  at::Tensor a = register_parameter("a", at::ones({3}));
  at::Tensor b = register_parameter("b", at::ones({3}));
  at::Tensor forward(const at::Tensor& x, bool both) {
    const auto y = (a * x).sum();
    return both ? y + (b * x).sum() : y;
  }
};

std::shared_ptr<PairImpl> make_pair_module() { return std::make_shared<PairImpl>(); }
at::Tensor ones() { return at::ones({3}); }

/// What no wrapper can be made of.
void refused_wrappers() {
  const auto group = init();
  auto text = text_of<InvalidArgument>([&] { DistributedDataParallel model(std::shared_ptr<PairImpl>(), group); });
  expect(contains(text, "module to be wrapped is null"), text);
  const auto refused = [&](const WrapperOptions& options) {
    return text_of<InvalidArgument>([&] { DistributedDataParallel model(make_pair_module(), group, options); });
  };
  text = refused({.parameters_and_buffers_to_ignore = {"c"}});
  expect(contains(text, "parameters_and_buffers_to_ignore names c, which the module does not have"), text);
  text = refused({.delay_all_reduce_named_params = {"b"}});
  expect(contains(text, "need to be set at the same time"), text);
  text = refused({.bucket_cap_mb_list = {1, 0}});
  expect(contains(text, "bucket_cap_mb_list must be above 0"), text);
  text = refused({.parameters_and_buffers_to_ignore = {"a", "b"}});
  expect(contains(text, "no parameter that needs a gradient"), text);
}

/// Under static_graph nobody is told to look for unused parameters.
void static_graph_advice() {
  const auto group = init();
  DistributedDataParallel model(make_pair_module(), group, {.static_graph = true});
  model.backward(model(ones(), true));
  const auto text = text_of<Exception>([&] {
    for (int step = 0; step < 2; ++step) model.backward(model(ones(), false));
  });
  expect(text == "parameters that got no gradient in the last backward on rank " + std::to_string(group.rank()) +
                     ": b: they had one in the first iteration, and static_graph is for the same parameters in each; "
                     "use them in the loss, or leave static_graph out",
         text);
}

/// A tensor that forward does not return hides a parameter that is used: libtorch's error in backward is ours.
void hidden_output() {
  const auto group = init();
  const auto module = make_pair_module();
  DistributedDataParallel model(module, group, {.find_unused_parameters = true});
  const auto text = text_of<Exception>([&] {
    const auto returned = model(ones(), false);
    model.backward(returned + (module->b * ones()).sum());
  });
  expect(contains(text, "parameter b got its gradient twice in one backward") && contains(text, "return from forward"),
         text);
}

/// The wrapper in the place of its module, and its log.
void module_of_wrapper() {
  const auto group = init();
  DistributedDataParallel model(make_pair_module(), group);
  model.set_runtime_logging_sample_rate(1);
  model.eval();
  expect(!model.is_training() && !model.module().is_training(), "eval");
  model.train();
  expect(model.is_training() && model.parameters().size() == 2, "train and parameters");
  expect(model.named_parameters().contains("a"), "names without a prefix");
  const torch::nn::Module& module = model;
  expect(&module == &model.module(), "the module itself");
  for (int step = 0; step < 3; ++step) {
    model.backward(model(ones(), true));
    model.check_reducer_finalized();
  }
  const auto log = model.logging_data();
  expect(log.numbers.at("world_size") == group.world_size(), "world_size in the log");
  expect(log.numbers.at("avg_forward_compute_time") > 0, "a measured forward");
  expect(log.texts.contains("rebuilt_bucket_sizes"), "buckets in the log");
}

/// What taas' optimizers clear, libtorch's refuse.
void zero_grad_of_views() {
  const auto group = init();
  const auto check = [&](auto&& make) {
    DistributedDataParallel model(make_pair_module(), group, {.gradient_as_bucket_view = true});
    auto optimizer = make(model.parameters());
    const auto& gradient = model.module().a.grad();
    for (const bool set_to_none : {true, false, true}) {
      model.backward(model(ones(), true));
      expect(at::equal(gradient, ones()), "one gradient, and not one added to another");
      optimizer.zero_grad(set_to_none);
      expect(set_to_none ? !gradient.defined() : at::equal(gradient, at::zeros({3})), "a cleared gradient");
    }
  };
  check([](auto parameters) { return SGD(parameters, torch::optim::SGDOptions(0.1)); });
  check([](auto parameters) { return Adam(parameters); });
  check([](auto parameters) { return AdamW(parameters); });
  check([](auto parameters) { return RMSprop(parameters); });
  check([](auto parameters) { return Adadelta(parameters); });
}

}  // namespace

std::map<std::string, Scenario> wrapper_scenarios() {
  return {{"refused_wrappers", refused_wrappers},
          {"zero_grad_of_views", zero_grad_of_views},
          {"static_graph_advice", static_graph_advice},
          {"hidden_output", hidden_output},
          {"module_of_wrapper", module_of_wrapper}};
}

}  // namespace taas::test
