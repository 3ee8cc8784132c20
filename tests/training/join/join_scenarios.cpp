#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/join.hpp"

namespace taas::test {
namespace {

using torch::nn::Linear;
using Wrapped = DistributedDataParallel<torch::nn::LinearImpl>;

constexpr JoinOptions kByActiveRanks{.divide_by_initial_world_size = false};

void backward_of(Wrapped& model, float input) {
  model.zero_grad();
  model(at::full({1, 2}, input)).sum().backward();
}

at::Tensor gradient(const Wrapped& model) { return model.module().weight.grad(); }

/// Rank r has r + 1 inputs, all of ones.
void uneven_inputs() {
  auto group = init();
  const int ranks = group.world_size();
  for (const bool initial : {true, false}) {
    Wrapped model(Linear(2, 1), group);
    join({model},
         [&] {
           for (int step = 0; step <= group.rank(); ++step) {
             backward_of(model, 1);
             const double share = initial ? static_cast<double>(ranks - step) / ranks : 1.0;
             expect(at::allclose(gradient(model), at::full({1, 2}, share)), "divided in step " + std::to_string(step));
           }
           at::NoGradGuard no_grad;
           for (auto& parameter : model.module().parameters()) parameter.fill_(group.rank());
         },
         {.divide_by_initial_world_size = initial});
    expect(at::equal(model.module().bias, at::full({1}, ranks - 1)), "the model of the last rank");
  }
}

void early_termination() {
  auto group = init();
  Wrapped model(Linear(2, 1), group);
  const auto text = text_of<Exception>([&] {
    join({model},
         [&] {
           for (int step = 0; step <= group.rank(); ++step) backward_of(model, 1);
         },
         {.throw_on_early_termination = true});
  });
  expect(contains(text, group.rank() == 0 ? "rank 0 has no inputs left while others have"
                                          : "another rank has no inputs left while rank"),
         text);
}

void join_unwinds() {
  auto group = init();
  Wrapped model(Linear(2, 1), group);
  const auto text = text_of<std::logic_error>([&] {
    join({model}, [&] {
      backward_of(model, 1);
      throw std::logic_error("a bad batch");
    });
  });
  expect(text == "a bad batch" && !static_cast<Joinable&>(model).in_join(), text);
  backward_of(model, static_cast<float>(1 + group.rank()));
  expect(at::allclose(gradient(model), at::full({1, 2}, 1.5)), "the model can be trained further");
}

void after_join() {
  auto group = init();
  Wrapped model(Linear(2, 1), group);
  join(
      {model},
      [&] {
        for (int step = 0; step <= group.rank(); ++step) backward_of(model, 1);
      },
      kByActiveRanks);
  backward_of(model, static_cast<float>(1 + group.rank()));
  expect(at::allclose(gradient(model), at::full({1, 2}, 1.5)), "the average of 1 and 2");
}

void join_arguments() {
  auto group = init();
  const auto none = text_of<InvalidArgument>([] { Join({}); });
  expect(contains(none, "a join needs one joinable at least"), none);
  Wrapped model(Linear(2, 1), group);
  Join scope({model});
  const auto twice = text_of<InvalidArgument>([&] { Join({model}); });
  expect(contains(twice, "in another join already"), twice);
  scope.finish();
  const auto again = text_of<InvalidArgument>([&] { scope.finish(); });
  expect(contains(again, "finished already"), again);
  join({model}, [&] { backward_of(model, 1); }, {.enable = false});
}

/// Sums a number over the ranks in each of its steps, as a sharded optimizer does.
class Counter : public Joinable {
 public:
  explicit Counter(ProcessGroup group) : group_(std::move(group)) {}

  void step() {
    Join::notify_join_context(*this);
    add(1);
  }
  void add(int number) {
    auto sum = at::full({1}, number);
    all_reduce(group_, sum);
    steps += sum.item<int>();
  }

  std::unique_ptr<JoinHook> join_hook(const JoinOptions&) override { return std::make_unique<Shadow>(*this); }
  const ProcessGroup& join_process_group() const override { return group_; }

  int steps = 0;
  int last_joiners = 0;

 private:
  class Shadow : public JoinHook {
   public:
    explicit Shadow(Counter& counter) : counter_(counter) {}
    void main_hook() override { counter_.add(0); }
    void post_hook(bool is_last_joiner) override { counter_.last_joiners += is_last_joiner; }

   private:
    Counter& counter_;
  };

  ProcessGroup group_;
};

void two_joinables() {
  auto group = init();
  Wrapped model(Linear(2, 1), group);
  Counter counter(group);
  Join scope({model, counter});
  for (int step = 0; step <= group.rank(); ++step) {
    backward_of(model, 1);
    counter.step();
  }
  scope.finish();
  expect(counter.steps == 1 + 2 + 3, "all steps of all ranks");
  expect(counter.last_joiners == (group.rank() == 2 ? 1 : 0), "rank 2 is the last");
}

}  // namespace

std::map<std::string, Scenario> join_scenarios() {
  return {{"uneven_inputs", uneven_inputs}, {"early_termination", early_termination}, {"join_unwinds", join_unwinds},
          {"after_join", after_join},       {"join_arguments", join_arguments},       {"two_joinables", two_joinables}};
}

}  // namespace taas::test
