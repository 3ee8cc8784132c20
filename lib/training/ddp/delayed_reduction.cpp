#include "training/ddp/delayed_reduction.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {
namespace {

constexpr std::size_t kDelayedBroadcastBytes = std::size_t{250} << 20;

void broadcast_values(const ProcessGroup& group, const std::vector<at::Tensor>& parameters) {
  if (!group.native()) return;
  std::vector<at::Tensor> values;
  for (const auto& parameter : parameters) values.push_back(parameter.detach());
  communicating("broadcast of delayed parameters",
                [&] { c10d::broadcast_coalesced(group.state().group, values, kDelayedBroadcastBytes, 0); });
}

}  // namespace

DelayedReduction::DelayedReduction(ProcessGroup group, std::vector<at::Tensor> parameters, const at::Tensor& trigger)
    : group_(std::move(group)), parameters_(std::move(parameters)), trigger_(trigger) {
  broadcast_values(group_, parameters_);
  std::int64_t size = 0;
  for (const auto& parameter : parameters_) size += parameter.numel();
  buffer_ = at::zeros({size}, at::TensorOptions(at::kFloat).device(group_.device()));
  std::int64_t at = 0;
  for (const auto& parameter : parameters_) {
    views_.push_back(buffer_.slice(0, at, at + parameter.numel()).view(parameter.sizes()));
    at += parameter.numel();
  }
  hook_ = trigger_.register_hook([this](const at::Tensor&) { reduce(); });
}

DelayedReduction::~DelayedReduction() { trigger_.remove_hook(hook_); }

void DelayedReduction::attach_gradients() {
  const bool none = std::all_of(parameters_.begin(), parameters_.end(),
                                [](const at::Tensor& parameter) { return !parameter.grad().defined(); });
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].grad().defined()) continue;
    if (!none) views_[i].zero_();
    parameters_[i].mutable_grad() = views_[i];
  }
  if (none) buffer_.zero_();
}

/// Python leaves the operation alone once it is started; the optimizer might be faster.
void DelayedReduction::reduce() {
  if (!group_.native()) return;
  buffer_.div_(group_.world_size());
  std::vector<at::Tensor> tensors{buffer_};
  auto work = communicating("reduction of delayed gradients", [&] { return group_.native()->allreduce(tensors); });
  torch::autograd::Engine::get_default_engine().queue_callback(
      [work] { communicating("reduction of delayed gradients", [&] { work->wait(); }); });
}

}  // namespace taas
