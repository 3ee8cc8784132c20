#include <torch/nn/modules/linear.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rank_scenarios.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using torch::nn::Linear;

constexpr int kParameters = 2;
/// One for each parameter.
constexpr DistributedDataParallelOptions kManyBuckets{.bucket_cap_mb = 0.000001};

/// Each gradient of the weight is `input` on this rank.
void one_step(DistributedDataParallel<torch::nn::LinearImpl>& model, float input) {
  model.zero_grad();
  model(at::full({1, model.module().options.in_features()}, input)).sum().backward();
}

/// Adds up in 16 bits, and remembers what it was given.
class AddingHook : public CommHook {
 public:
  explicit AddingHook(ProcessGroup group) : group_(std::move(group)) {}

  GradientFuture run(GradBucket& bucket) override {
    expect(bucket.index() == indices.size(), "buckets come in their order");
    indices.push_back(bucket.index());
    parameters += bucket.parameters().size();
    last += bucket.is_last();
    expect(bucket.gradients().size() == bucket.parameters().size(), "a gradient for each parameter");
    bucket.set_buffer(bucket.buffer().to(at::kHalf));
    const auto sum = all_reduce_average(group_, bucket.buffer());
    return then(sum, [bucket](const at::Tensor& /*average*/) { return bucket.buffer() * 10; });
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
  const auto refused = [&](auto other) { return text_of<InvalidArgument>([&] { model.register_comm_hook(other); }); };
  auto text = refused(nullptr);
  expect(text == "the communication hook is null", text);
  model.register_comm_hook(hook);
  text = refused(bf16_compress_hook(group));
  expect(contains(text, "this model has a communication hook already"), text);
  for (int step = 0; step < 3; ++step) {
    hook->indices.clear();
    one_step(model, static_cast<float>(1 + group.rank()));
    expect(at::allclose(model.module().weight.grad(), at::full({2, 3}, 15.0)), "ten times the average of 1 and 2");
  }
  expect(hook->indices.size() == kParameters, "a bucket for each parameter, once they are made anew");
  expect(hook->parameters == 3 * kParameters && hook->last == 3, "all parameters, and one last bucket, in each step");
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
  const auto thrown = text_of<std::domain_error>([&] {
    error_of_result(group, [](const Tensor& /*buffer*/) -> c10::IValue { throw std::domain_error("a bad bucket"); });
  });
  expect(thrown == "a bad bucket", thrown);
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

}  // namespace

std::map<std::string, Scenario> hook_scenarios() {
  return {{"hook_results", hook_results},
          {"hook_result_of_later_bucket", hook_result_of_later_bucket},
          {"hook_result_is_view", hook_result_is_view},
          {"own_hook", own_hook}};
}

}  // namespace taas::test
