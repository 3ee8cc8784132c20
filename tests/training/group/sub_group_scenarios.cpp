#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/device_mesh.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

/// The sum of the members' ranks in the whole run.
int sum_of_ranks(const ProcessGroup& group, int rank) {
  auto tensor = at::full({3}, rank, here(at::kInt));
  all_reduce(group, tensor);
  return tensor[0].item<int>();
}

/// Some ranks in an order of their own, next to a group of all; a group of one; one within another.
void sub_groups() {
  auto all = join_here();
  auto backwards = new_group(all, {3, 1, 0});
  expect(backwards.has_value() == (all.rank() != 2), "rank 2 is in no group");
  auto alone = new_group(all, {2}, {.timeout = std::chrono::seconds(5)});
  if (backwards) {
    expect(backwards->ranks() == std::vector<int>{3, 1, 0}, "ranks");
    expect(backwards->ranks()[static_cast<std::size_t>(backwards->rank())] == all.rank(), "rank");
    expect(backwards->local_rank() == all.local_rank() && backwards->device() == all.device(), "place");
    expect(sum_of_ranks(*backwards, all.rank()) == 4, "sum of the ranks 0, 1 and 3");
    auto inner = new_group(*backwards, {0, 2});  // 3 and 0 of the run
    if (inner) expect(inner->ranks() == std::vector<int>{3, 0} && sum_of_ranks(*inner, all.rank()) == 3, "nested");
  } else {
    expect(alone && alone->world_size() == 1 && sum_of_ranks(*alone, 2) == 2, "a group of one");
  }
  expect(sum_of_ranks(all, all.rank()) == 6, "the first group");
}

/// Even and odd ranks, the highest first; rank 3 in none.
void split_groups() {
  auto all = join_here();
  const auto color = all.rank() == 3 ? std::nullopt : std::optional<int>(all.rank() % 2);
  auto part = split(all, color, -all.rank());
  expect(part.has_value() == color.has_value(), "a rank without a color is in no group");
  if (part) expect(part->ranks() == (all.rank() % 2 == 0 ? std::vector<int>{2, 0} : std::vector<int>{1}), "members");
  if (part && part->world_size() == 2) expect(sum_of_ranks(*part, all.rank()) == 2, "sum of 0 and 2");
  auto again = split(all, 0);
  expect(again && again->ranks() == all.ranks(), "all of one color");
}

void mesh() {
  auto all = join_here();
  const DeviceMesh mesh(all, {{"replicate", 2}, {"shard", 2}});
  const int row = all.rank() / 2, column = all.rank() % 2;
  expect(mesh.coordinate("replicate") == row && mesh.coordinate("shard") == column, "coordinates");
  expect(mesh["shard"].ranks() == std::vector<int>{2 * row, 2 * row + 1}, "neighbours");
  expect(mesh["replicate"].ranks() == std::vector<int>{column, column + 2}, "replicas");
  torch::nn::Linear linear(2, 1);
  linear->to(all.device());
  DistributedDataParallel model(linear, mesh["replicate"]);
  model(at::full({1, 2}, all.rank(), here())).sum().backward();
  const float mean = static_cast<float>(column) + 1;  // of column and column + 2
  expect(at::allclose(linear->weight.grad(), at::full({1, 2}, mean, here())), "gradients along a dimension");
}

void refused_groups() {
  auto all = join_here();
  const auto refused = [](auto&& call) { return text_of<InvalidArgument>(call); };
  expect(contains(refused([&] { new_group(all, {}); }), "a group needs a rank at least"), "empty");
  expect(contains(refused([&] { new_group(all, {0, 9}); }), "rank 9 is not a rank of this group"), "outside");
  expect(contains(refused([&] { new_group(all, {1, 1}); }), "rank 1 is named twice"), "twice");
  expect(contains(refused([&] { DeviceMesh(all, {{"a", 3}}); }), "multiply to 3, but the group has 4"), "sizes");
  expect(contains(refused([&] { DeviceMesh(all, {{"a", 2}, {"a", 2}}); }), "distinct"), "names");
  const DeviceMesh one(all, {{"data", 4}});
  expect(refused([&] { one["model"]; }) == "DeviceMesh has no dimension 'model', but data", "unknown");
}

/// Another shape, and another operation, on one rank.
void mismatches() {
  auto all = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60), .check_collectives = true});
  auto tensor = at::ones({4});
  all_reduce(all, tensor);
  expect(tensor[0].item<int>() == all.world_size(), "what fits is done");
  auto other = at::ones({all.rank() == 1 ? 8 : 4});
  const auto shapes = text_of<CommunicationError>([&] { all_reduce(all, other); });
  expect(contains(shapes, "8") && contains(shapes, "ALLREDUCE") && !contains(shapes, "\n"), shapes);
}

void mismatched_operations() {
  auto all = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60), .check_collectives = true});
  auto tensor = at::ones({4});
  const auto text =
      text_of<CommunicationError>([&] { all.rank() == 1 ? broadcast(all, tensor) : all_reduce(all, tensor); });
  expect(contains(text, "BROADCAST") && contains(text, "ALLREDUCE"), text);
}

}  // namespace

std::map<std::string, Scenario> sub_group_scenarios() {
  return {{"sub_groups", sub_groups},
          {"split_groups", split_groups},
          {"mesh", mesh},
          {"refused_groups", refused_groups},
          {"mismatches", mismatches},
          {"mismatched_operations", mismatched_operations}};
}

}  // namespace taas::test
