#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hooks/hook_training.hpp"
#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using torch::nn::Linear;

constexpr int kParameters = 2;

/// Adds up, and remembers what it was given.
class AddingHook : public CommHook {
 public:
  explicit AddingHook(ProcessGroup group) : group_(std::move(group)) {}

  GradientFuture run(GradBucket& bucket) override {
    expect(bucket.index() == indices.size(), "buckets come in their order");
    indices.push_back(bucket.index());
    parameters += bucket.parameters().size();
    last += bucket.is_last();
    expect(bucket.gradients().size() == bucket.parameters().size(), "a gradient for each parameter");
    auto sum = all_reduce_average(group_, bucket.buffer());
    return then(sum, [bucket](const at::Tensor& average) { return average * 10; });
  }

  std::vector<std::size_t> indices;
  std::size_t parameters = 0;
  int last = 0;

 private:
  ProcessGroup group_;
};

void own_hook() {
  auto group = init();
  DistributedDataParallel model(Linear(3, 2), group, kManyBuckets);
  auto hook = std::make_shared<AddingHook>(group);
  model.register_comm_hook(hook);
  for (int step = 0; step < 3; ++step) {
    hook->indices.clear();
    one_step(model, static_cast<float>(1 + group.rank()));
    expect(at::allclose(model.module().weight.grad(), at::full({2, 3}, 15.0)), "ten times the average of 1 and 2");
  }
  expect(hook->indices.size() == kParameters, "a bucket for each parameter, once they are made anew");
  expect(hook->parameters == 3 * kParameters && hook->last == 3, "all parameters, and one last bucket, in each step");
}

void one_hook() {
  auto group = init();
  DistributedDataParallel model(Linear(3, 2), group);
  const auto none = text_of<InvalidArgument>([&] { model.register_comm_hook(nullptr); });
  expect(none == "the communication hook is null", none);
  model.register_comm_hook(noop_hook());
  const auto second = text_of<InvalidArgument>([&] { model.register_builtin_comm_hook(BuiltinCommHook::kAllReduce); });
  expect(contains(second, "this model has a communication hook already"), second);
}

void hook_throws() {
  auto group = init();
  DistributedDataParallel model(Linear(3, 2), group);
  model.register_comm_hook(quantization_pertensor_hook(group));
  const auto text = text_of<InvalidArgument>([&] { one_step(model, std::numeric_limits<float>::infinity()); });
  expect(contains(text, "gradients that are not finite cannot be quantized"), text);
}

/// The error of a backward whose hook gives `given(buffer)`.
std::string error_of_result(const ProcessGroup& group, std::function<c10::IValue(const at::Tensor&)> given) {
  class ResultHook : public CommHook {
   public:
    explicit ResultHook(std::function<c10::IValue(const at::Tensor&)> given) : given_(std::move(given)) {}
    GradientFuture run(GradBucket& bucket) override {
      const auto value = given_(bucket.buffer());
      if (value.isBool()) return nullptr;
      auto future = c10::make_intrusive<c10::ivalue::Future>(c10::AnyType::get());
      future->markCompleted(value);
      return future;
    }

   private:
    std::function<c10::IValue(const at::Tensor&)> given_;
  };
  DistributedDataParallel model(Linear(3, 2), group, {.bucket_cap_mb = 0.000001, .init_sync = false});
  model.register_comm_hook(std::make_shared<ResultHook>(std::move(given)));
  one_step(model, 1);  // the first bucket is of all parameters
  return "none";
}

void hook_results() {
  const auto group = init();
  const auto refused = [&](const std::string& text, auto given) {
    const auto error = text_of<InvalidArgument>([&] { error_of_result(group, given); });
    expect(error == "the communication hook 'CommHook' gave " + text +
                        " for bucket 0, whose gradients are (8) Float on cpu: give a tensor like bucket.buffer()",
           error);
  };
  using at::Tensor;
  refused("(7) Float on cpu", [](const Tensor& buffer) { return buffer.slice(0, 1); });
  refused("(2, 4) Float on cpu", [](const Tensor& buffer) { return buffer.view({2, 4}); });
  refused("(8) Long on cpu", [](const Tensor& buffer) { return buffer.to(at::kLong); });
  refused("(8) Float on meta", [](const Tensor& buffer) { return buffer.to(at::kMeta); });
  refused("(8) Float on cpu, sparse", [](const Tensor& buffer) { return buffer.to_sparse(); });
  refused("an undefined tensor", [](const Tensor& /*buffer*/) { return Tensor(); });
  refused("a list of 2 values", [](const Tensor& buffer) { return std::vector<Tensor>{buffer, buffer}; });
  refused("nothing", [](const Tensor& /*buffer*/) { return c10::IValue(); });
  refused("a value of type Double", [](const Tensor& /*buffer*/) { return 1.5; });
  refused("a future that is null", [](const Tensor& /*buffer*/) { return true; });
  expect(error_of_result(group, [](const Tensor& buffer) { return std::vector<Tensor>{buffer}; }) == "none",
         "the list of one tensor that a work of c10d holds");
  const auto text = text_of<InvalidArgument>([&] {
    DistributedDataParallel model(Linear(3, 2), group);
    model.register_comm_hook(make_comm_hook([](GradBucket& /*bucket*/) { return Tensor(); }));
    one_step(model, 1);
  });
  expect(contains(text, "'make_comm_hook' gave an undefined tensor for bucket 0"), text);
  expect(contains(text_of<InvalidArgument>([] { then(nullptr, [](const Tensor& of) { return of; }); }), "is null"),
         "a null future to go on from");
}

/// The later buckets are named by their own number, also after a backward that failed.
void hook_result_of_later_bucket() {
  const auto group = init();
  DistributedDataParallel model(Linear(3, 2), group, kManyBuckets);
  int failing = -1;
  model.register_comm_hook(make_comm_hook([&](GradBucket& bucket) {
    return static_cast<int>(bucket.index()) == failing ? at::zeros({1}) : bucket.buffer();
  }));
  for (int step = 0; step < 2; ++step) one_step(model, 1);
  failing = 1;
  const auto text = text_of<InvalidArgument>([&] { one_step(model, 1); });
  expect(contains(text, "gave (1) Float on cpu for bucket 1, whose gradients are ("), text);
}

/// A result may be any view: its numbers are the gradients.
void hook_result_is_view() {
  const auto group = init();
  DistributedDataParallel model(Linear(3, 2), group);
  bool strided = false;
  model.register_comm_hook(make_comm_hook([&](GradBucket& bucket) {
    const auto twice = at::stack({bucket.buffer().mul(5), bucket.buffer()}, strided ? 1 : 0);
    return strided ? twice.select(1, 1) : twice.select(0, 1);
  }));
  for (int step = 0; step < 2; ++step) {
    one_step(model, 1);
    expect(at::equal(model.module().weight.grad(), at::ones({2, 3})),
           "gradients of a view, step " + std::to_string(step));
    strided = true;
  }
}

void model_averaging() {
  auto group = init();
  const auto rank = static_cast<float>(group.rank());
  auto used = at::full({2}, rank), unused = at::full({2}, rank);
  used.mutable_grad() = at::zeros({2});
  PeriodicModelAverager averager(group, 2, 1);
  averager.average_parameters({used, unused});
  expect(at::equal(used, at::full({2}, rank)), "nothing before warmup_steps");
  averager.average_parameters({used, unused});
  expect(at::equal(used, at::full({2}, 0.5)) && at::equal(unused, at::full({2}, rank)), "those with a gradient");
  used.fill_(rank);
  averager.average_parameters({used, unused});
  expect(at::equal(used, at::full({2}, rank)) && averager.step() == 3, "every second step");

  const ProcessGroup alone = group;
  HierarchicalModelAverager levels({{2, alone}, {4, group}});
  for (int step = 0; step < 4; ++step) {
    used.fill_(rank + static_cast<float>(step));
    levels.average_parameters({used});
    expect(at::equal(used, at::full({2}, step % 2 ? rank + static_cast<float>(step) : 0.5F + static_cast<float>(step))),
           "a level of step " + std::to_string(step));
  }
  const auto text = text_of<InvalidArgument>([&] { HierarchicalModelAverager({{4, group}, {2, group}}); });
  expect(contains(text, "the periods must rise, but 2 does not"), text);
}

void hook_alone() {
  auto group = init();
  DistributedDataParallel model(Linear(3, 2), group);
  const auto text = text_of<InvalidArgument>([&] {
    model.register_comm_hook(hook_then_optimizer(allreduce_hook(group), [](const at::Tensor&, const at::Tensor&) {}));
  });
  expect(contains(text, "hook_then_optimizer_wrapper does not run in a group of one process"), text);
  model.register_comm_hook(fp16_compress_hook(group));
  one_step(model, 2);
  expect(at::equal(model.module().weight.grad(), at::full({2, 3}, 2.0)), "the gradient");
}

}  // namespace

std::map<std::string, Scenario> hook_scenarios() {
  return {{"hook_results", hook_results},
          {"hook_result_of_later_bucket", hook_result_of_later_bucket},
          {"hook_result_is_view", hook_result_is_view},
          {"own_hook", own_hook},
          {"one_hook", one_hook},
          {"hook_throws", hook_throws},
          {"hook_alone", hook_alone},
          {"model_averaging", model_averaging}};
}

}  // namespace taas::test
