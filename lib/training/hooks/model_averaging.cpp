#include <ATen/ATen.h>

#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

/// All in one flat tensor: parameters of several types are averaged in the widest of them.
void average(const std::vector<at::Tensor>& parameters, const ProcessGroup& group) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const auto& parameter : parameters) parts.push_back(parameter.detach().reshape(-1));
  auto flat = at::cat(parts);
  flat.div_(group.world_size());
  all_reduce(group, flat);
  std::int64_t at = 0;
  for (const auto& parameter : parameters) {
    parameter.detach().copy_(flat.slice(0, at, at + parameter.numel()).view_as(parameter));
    at += parameter.numel();
  }
}

std::vector<at::Tensor> with_gradient(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> found;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) found.push_back(parameter);
  }
  return found;
}

void check_steps(std::int64_t period, std::int64_t warmup_steps) {
  if (period < 1) throw InvalidArgument("the period of an averager must be at least 1, not " + std::to_string(period));
  if (warmup_steps < 0) {
    throw InvalidArgument("warmup_steps must not be negative, but is " + std::to_string(warmup_steps));
  }
}

}  // namespace

void ModelAverager::average_parameters(const std::vector<at::Tensor>& parameters) {
  const auto* group = group_of_step(step_++);
  const auto found = group ? with_gradient(parameters) : std::vector<at::Tensor>();
  if (!found.empty()) average(found, *group);
}

void ModelAverager::average_parameters(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  average_parameters(all);
}

PeriodicModelAverager::PeriodicModelAverager(ProcessGroup group, std::int64_t period, std::int64_t warmup_steps)
    : group_(std::move(group)), period_(period), warmup_steps_(warmup_steps) {
  check_steps(period, warmup_steps);
}

const ProcessGroup* PeriodicModelAverager::group_of_step(std::int64_t step) const {
  return step >= warmup_steps_ && (step - warmup_steps_) % period_ == 0 ? &group_ : nullptr;
}

HierarchicalModelAverager::HierarchicalModelAverager(std::vector<std::pair<std::int64_t, ProcessGroup>> period_groups,
                                                     std::int64_t warmup_steps)
    : period_groups_(std::move(period_groups)), warmup_steps_(warmup_steps) {
  if (period_groups_.empty()) throw InvalidArgument("period_groups is empty: give a period and a group at least");
  std::int64_t before = 0;
  for (const auto& [period, group] : period_groups_) {
    check_steps(period, warmup_steps);
    if (period <= before) throw InvalidArgument("the periods must rise, but " + std::to_string(period) + " does not");
    before = period;
  }
}

const ProcessGroup* HierarchicalModelAverager::group_of_step(std::int64_t step) const {
  if (step < warmup_steps_) return nullptr;
  for (auto entry = period_groups_.rbegin(); entry != period_groups_.rend(); ++entry) {
    if (step % entry->first == 0) return &entry->second;
  }
  return nullptr;
}

void PostLocalSGDOptimizer::step() {
  optimizer_.step();
  averager_.average_parameters(optimizer_);
}

}  // namespace taas
