#include "training/graph/step_check.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <mutex>
#include <sstream>

#include "training/graph/touched_tensors.hpp"

namespace taas::detail {
namespace {

/// Kernels that add in any order differ in the last bits, and Adam makes whole steps of these where a gradient is all
/// noise: a wrong record is further off than that.
constexpr double kMostOfAnUpdate = 0.1;
constexpr double kMostOfResult = 1e-2;

at::Tensor bytes_of(const at::Tensor& memory) { return memory.contiguous().view({-1}).view(at::kByte); }

bool same_bytes(const at::Tensor& one, const at::Tensor& other) { return at::equal(bytes_of(one), bytes_of(other)); }

double norm_of(const at::Tensor& difference) { return difference.to(at::kDouble).norm().item<double>(); }

/// How far the replay is from the step, as a part of what the step changes; 0 where it is near enough.
double part_wrong(const at::Tensor& before, const at::Tensor& replayed, const at::Tensor& stepped) {
  if (same_bytes(replayed, stepped)) return 0;
  if (!stepped.is_floating_point()) return 1;
  auto update = norm_of(stepped.to(at::kDouble) - before.to(at::kDouble));
  auto off = norm_of(replayed.to(at::kDouble) - stepped.to(at::kDouble));
  if (off <= kMostOfAnUpdate * update) return 0;
  return update > 0 ? off / update : 1;  // not a number counts as wrong
}

}  // namespace

StepCheck::StepCheck(const std::vector<at::Tensor>& touched) {
  for (const auto& tensor : touched) {
    memory_.push_back(whole_memory_of(tensor));
    if (!tensor.is_leaf() || !tensor.requires_grad()) continue;
    leaves_.push_back(tensor);
    gradients_.push_back(tensor.grad());
  }
  if (!touched.empty()) generator_ = at::globalContext().defaultGenerator(touched.front().device());
  before_ = copied();
}

StepCheck::State StepCheck::copied() {
  State state;
  for (const auto& memory : memory_) state.memory.push_back(memory.clone());
  if (generator_.defined()) {
    std::scoped_lock lock(generator_.mutex());
    state.generator = generator_.get_state().clone();
  }
  return state;
}

void StepCheck::put_back(const State& state) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i].copy_(state.memory[i]);
  if (!generator_.defined()) return;
  std::scoped_lock lock(generator_.mutex());
  generator_.set_state(state.generator);
}

void StepCheck::replayed(const at::Tensor& result) {
  result_ = result.clone();
  after_replay_ = copied();
  put_back(before_);
}

std::optional<std::string> StepCheck::difference(const at::Tensor& result) const {
  constexpr bool kEqualNan = true;
  std::ostringstream text;
  if (!same_bytes(result_, result) && !at::allclose(result_, result, kMostOfResult, 1e-6, kEqualNan)) {
    if (result.numel() != 1) return "it gave another result";
    text << "it gave " << result_.item().toDouble() << " for " << result.item().toDouble();
    return text.str();
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    auto part = part_wrong(before_.memory[i], after_replay_.memory[i], memory_[i]);
    if (part == 0) continue;
    text << "what it changed of a tensor " << memory_[i].sizes() << ' ' << memory_[i].scalar_type() << " was "
         << std::lround(100 * part) << " % off";
    return text.str();
  }
  return std::nullopt;
}

void StepCheck::keep_replay() {
  put_back(after_replay_);
  for (std::size_t i = 0; i < leaves_.size(); ++i) leaves_[i].mutable_grad() = gradients_[i];
}

}  // namespace taas::detail
