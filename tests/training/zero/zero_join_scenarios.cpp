// A sharded optimizer with uneven inputs, beside DistributedDataParallel with the whole one.
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/join.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;
using JoinedNet = DistributedDataParallel<MixedNetImpl>;

constexpr double kJoinBucketMiB = 0.01;

struct Uneven {
  std::string name;
  JoinOptions join{};
  std::function<int(int rank)> batches;
  int accumulate = 1;
  bool find_unused = false;
  bool overlap_gather = false;
  bool zero_grad_first = false;  ///< gradients of the last step are left when a rank is through
};

/// The rank that has most batches uses the branch always: it is never without a gradient on all ranks.
bool with_branch(const Uneven& uneven, const ProcessGroup& group, int step) {
  return !uneven.find_unused || group.rank() == group.world_size() - 1 || (step + group.rank()) % 2 == 0;
}

struct UnevenTraining {
  std::function<at::Tensor(const at::Tensor& images, bool extra)> forward;
  std::function<void(const std::function<void()>& backward)> unsynced;
  std::function<void()> zero_grad;
  torch::optim::Optimizer& optimizer;
};

void run_uneven(const Uneven& uneven, const ProcessGroup& group, UnevenTraining& training) {
  for (int step = 0; step < uneven.batches(group.rank()); ++step) {
    const auto backward = [&] {
      const auto scores = training.forward(zero_images(step, group.rank()), with_branch(uneven, group, step));
      zero_loss(scores, step, group.rank()).backward();
    };
    if ((step + 1) % uneven.accumulate != 0) {
      training.unsynced(backward);
      continue;
    }
    if (uneven.zero_grad_first && uneven.accumulate == 1) training.zero_grad();
    backward();
    training.optimizer.step();
    if (!uneven.zero_grad_first) training.zero_grad();
    for (auto& one : training.optimizer.param_groups()) one.options().set_lr(one.options().get_lr() * 0.9);
  }
}

std::optional<JoinedNet> wrap_uneven(const MixedNet& net, const ProcessGroup& group, const Uneven& uneven) {
  return std::optional<JoinedNet>(
      std::in_place, net, group,
      DistributedDataParallelOptions{.bucket_cap_mb = kJoinBucketMiB, .find_unused_parameters = uneven.find_unused});
}

template <class Kind, class Options>
std::pair<std::vector<at::Tensor>, c10::IValue> join_whole(const Uneven& uneven, const ProcessGroup& group,
                                                           const Options& defaults) {
  auto net = same_net();
  auto model = wrap_uneven(net, group, uneven);
  Kind optimizer(net->parameters(), defaults);
  UnevenTraining training{[&](const at::Tensor& images, bool extra) { return (*model)(images, extra); },
                          [&](const std::function<void()>& backward) {
                            const auto scope = model->no_sync();
                            backward();
                          },
                          [&] { model->zero_grad(); }, optimizer};
  join(
      {*model}, [&] { run_uneven(uneven, group, training); }, uneven.join);
  return {copies_of(net), optimizer_state(optimizer)};
}

template <class Options>
std::pair<std::vector<at::Tensor>, c10::IValue> join_sharded(const Uneven& uneven, const ProcessGroup& group,
                                                             const Options& defaults, int stage) {
  auto net = same_net();
  std::optional<JoinedNet> model;
  if (stage == 1) model = wrap_uneven(net, group, uneven);
  ZeroOptimizer optimizer(net->parameters(), group, defaults,
                          {.stage = stage,
                           .bucket_cap_mb = kJoinBucketMiB,
                           .find_unused_parameters = uneven.find_unused,
                           .overlap_gather = uneven.overlap_gather});
  UnevenTraining training{[&](const at::Tensor& images, bool extra) {
                            return model ? (*model)(images, extra) : net->forward(images, extra);
                          },
                          [&](const std::function<void()>& backward) {
                            if (model) {
                              const auto scope = model->no_sync();
                              return backward();
                            }
                            const auto scope = optimizer.no_sync();
                            backward();
                          },
                          [&] { optimizer.zero_grad(); }, optimizer};
  Join::Joinables joinables{optimizer};
  if (model) joinables.insert(joinables.begin(), *model);
  join(
      joinables, [&] { run_uneven(uneven, group, training); }, uneven.join);
  return {copies_of(net), optimizer.consolidated_state(group.world_size() - 1)};
}

/// The last rank has most batches: its whole optimizer has made all steps.
template <class Kind, class Options>
void compare_joined(const Uneven& uneven, const ProcessGroup& group, const Options& defaults) {
  const auto whole = join_whole<Kind>(uneven, group, defaults);
  for (const int stage : {1, 2}) {
    const auto what = uneven.name + ", stage " + std::to_string(stage);
    const auto sharded = join_sharded(uneven, group, defaults, stage);
    for (std::size_t i = 0; i < whole.first.size(); ++i) {
      expect(same_here()(sharded.first[i], whole.first[i]), what + ": parameter " + std::to_string(i) + " differs");
    }
    if (group.rank() != group.world_size() - 1) continue;
    const auto theirs = whole.second.toGenericDict().at("state"), ours = sharded.second.toGenericDict().at("state");
    expect(same_values(theirs, ours, same_here()), what + ": the consolidated state differs");
  }
}

void zero_join_parity() {
  at::set_num_threads(1);
  auto group = join_as_asked();
  const auto rising = [](int rank) { return 2 * rank + 1; };
  const auto late = [](int rank) { return rank == 0 ? 0 : 2 + rank; };  // rank 0 makes the buckets, without a batch
  const auto sgd = SGDOptions(0.05).momentum(0.9);
  const auto adamw = AdamWOptions(1e-2).eps(eps_here()).amsgrad(true);
  compare_joined<SGD>({.name = "SGD", .batches = rising, .zero_grad_first = true}, group, sgd);
  compare_joined<AdamW>({.name = "AdamW", .batches = rising}, group, adamw);
  compare_joined<AdamW>({.name = "by active ranks", .join = {.divide_by_initial_world_size = false}, .batches = rising},
                        group, adamw);
  compare_joined<AdamW>({.name = "no batch", .batches = late}, group, adamw);
  compare_joined<AdamW>({.name = "accumulation", .batches = rising, .accumulate = 2}, group, adamw);
  compare_joined<AdamW>({.name = "gathers that last", .batches = rising, .overlap_gather = true}, group, adamw);
  compare_joined<AdamW>({.name = "unused", .batches = rising, .find_unused = true}, group, adamw);
}

void clip_and_step(MixedNet& net, ZeroOptimizer& optimizer, JoinedNet* model, int step, int rank) {
  const auto images = zero_images(step, rank);
  zero_loss(model ? (*model)(images, true) : net->forward(images, true), step, rank).backward();
  optimizer.clip_grad_norm(0.1);
  optimizer.step();
  optimizer.zero_grad();
}

/// Both stages clip alike on ranks that are through, and all ranks have one model then, and after further training.
void zero_join_clip() {
  auto group = join_as_asked();
  std::vector<std::vector<at::Tensor>> ends;
  for (const int stage : {1, 2}) {
    auto net = same_net();
    std::optional<JoinedNet> model;
    if (stage == 1) model.emplace(net, group);
    ZeroOptimizer optimizer(net->parameters(), group, SGDOptions(0.5).momentum(0.9), {.stage = stage});
    Join::Joinables joinables{optimizer};
    if (model) joinables.insert(joinables.begin(), *model);
    const auto step = [&](int number) {
      clip_and_step(net, optimizer, model ? &*model : nullptr, number, group.rank());
    };
    join(joinables, [&] {
      for (int i = 0; i <= 2 * group.rank(); ++i) step(i);
    });
    step(100);
    for (const auto& parameter : net->parameters()) {
      auto first = parameter.detach().clone();
      broadcast(group, first);
      expect(at::equal(first, parameter), "ranks differ, stage " + std::to_string(stage));
    }
    ends.push_back(copies_of(net));
  }
  for (std::size_t i = 0; i < ends[0].size(); ++i) {
    expect(are_near(ends[1][i], ends[0][i]), "the stages differ in parameter " + std::to_string(i));
  }
}

void zero_join_early() {
  auto group = join_as_asked();
  auto net = same_net();
  ZeroOptimizer optimizer(net->parameters(), group, SGDOptions(0.1));
  const auto step = [&](int number) {
    zero_loss(net->forward(zero_images(number, group.rank()), true), number, group.rank()).backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  const auto text = text_of<Exception>([&] {
    join({optimizer},
         [&] {
           for (int i = 0; i <= group.rank(); ++i) step(i);
         },
         {.throw_on_early_termination = true});
  });
  expect(contains(text, group.rank() == 0 ? "rank 0 has no inputs left while others have"
                                          : "another rank has no inputs left while rank"),
         text);
  optimizer.zero_grad();
  step(5);
  auto sharded = ZeroOptimizer(net->parameters(), group, SGDOptions(0.1), {.stage = 1});
  const auto alone = text_of<InvalidArgument>([&] { Join({sharded}); });
  expect(contains(alone, "give both to one join, taas::Join({model, optimizer})"), alone);
}

}  // namespace

std::map<std::string, Scenario> zero_join_scenarios() {
  return {
      {"zero_join_parity", zero_join_parity}, {"zero_join_clip", zero_join_clip}, {"zero_join_early", zero_join_early}};
}

}  // namespace taas::test
