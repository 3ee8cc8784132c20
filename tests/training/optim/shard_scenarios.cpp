#include <ATen/Functions.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "../group/scenario_tensors.hpp"
#include "../rank_scenarios.hpp"
#include "taas/amp.hpp"
#include "taas/clip_grad.hpp"
#include "taas/error.hpp"
#include "taas/process_group.hpp"

namespace taas::test {
namespace {

/// Each rank has a part of one vector; the last one has nothing.
std::vector<at::Tensor> shard_of(const ProcessGroup& group, const at::Tensor& whole) {
  if (group.rank() == group.world_size() - 1) return {};
  const auto length = whole.numel() / (group.world_size() - 1);
  auto parameter = at::zeros({length}, here());
  parameter.mutable_grad() = whole.narrow(0, length * group.rank(), length).clone();
  return {parameter};
}

void clip_shards() {
  auto group = join_as_asked();
  const auto whole = at::arange(-5, 7, here()) / 3 + 0.01;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double norm_type : {1.0, 2.0, 3.0, kInfinity, -kInfinity}) {
    const auto parameters = shard_of(group, whole);
    const auto norm = clip_grad_norm_(group, parameters, 0.5, {.norm_type = norm_type});
    const auto expected = at::linalg_vector_norm(whole, norm_type);
    expect(at::allclose(norm.cpu(), expected.cpu()), "the norm is " + std::to_string(norm.item<double>()) +
                                                         ", and not " + std::to_string(expected.item<double>()));
    if (parameters.empty()) continue;
    const auto scaled = shard_of(group, whole)[0].grad() * (0.5 / (expected + 1e-6)).clamp_max(1.0);
    expect(at::allclose(parameters[0].grad(), scaled), "the shard is clipped by another factor");
  }
  const auto text = text_of<InvalidArgument>([&] { get_total_norm(group, {whole}, {.norm_type = 0}); });
  expect(contains(text, "order 0"), text);
}

/// One rank's gradient is infinite: all leave out the step, and their scales stay the same.
void scale_shards() {
  auto group = join_as_asked();
  auto parameter = at::ones({2}, here()).requires_grad_();
  torch::optim::SGD optimizer({parameter}, 0.5);
  GradScaler scaler({.init_scale = 8, .group = group});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    auto loss = (parameter * (step == 0 && group.rank() == 1 ? INFINITY : 1.0)).sum();
    scaler.scale(loss).backward();
    const bool stepped = scaler.step(optimizer);
    scaler.update();
    expect(stepped == (step == 1), "step " + std::to_string(step) + (stepped ? " is made" : " is left out"));
    expect(scaler.get_scale() == 4, "the scale is " + std::to_string(scaler.get_scale()));
  }
  expect(at::equal(parameter, at::full({2}, 0.5f, here())), "the parameter has had another step");
}

}  // namespace

std::map<std::string, Scenario> shard_scenarios() {
  return {{"clip_shards", clip_shards}, {"scale_shards", scale_shards}};
}

}  // namespace taas::test
