#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "taas/recordable_optimizer.hpp"

namespace taas::detail {

/// Learning rates and step counts of an optimizer as tensors beside its parameters. The numbers on the host are the
/// truth (schedulers and checkpoints use them); a tensor is written anew where it is known to differ, so that in a
/// training loop nothing is written but a changed rate.
class StepMirror {
 public:
  explicit StepMirror(const OptimizerKernels& chosen) : kernels(chosen) {}

  const OptimizerKernels kernels;

  /// At the start of a step. Throws InvalidArgument when it is being recorded and the optimizer is not capturable.
  void start_step(const char* optimizer);

  /// float32 of no dimension. While recording the tensor is taken as it is.
  at::Tensor rate(std::size_t group, double rate, const at::Tensor& beside);
  /// The number of steps that `parameter` has had, likewise.
  at::Tensor count(const at::Tensor& parameter, std::int64_t steps);
  /// The tensor that count() gave was raised by one.
  void counted(const at::Tensor& parameter);

  /// Brings tensors that exist up to date.
  void refresh_rate(std::size_t group, double rate);
  void refresh_count(const at::Tensor& parameter, std::int64_t steps);

  /// A parameter that the recorded step changes, and what is remembered for it.
  struct Recorded {
    at::Tensor parameter;
    std::vector<at::Tensor> state;
  };
  void add_recorded(Recorded recorded) { recorded_.push_back(std::move(recorded)); }
  [[nodiscard]] const std::vector<Recorded>& recorded() const { return recorded_; }

 private:
  template <class Number>
  struct Mirrored {
    at::Tensor tensor;
    Number number{};
    void set(Number value);
  };
  template <class Number>
  static at::Tensor current(Mirrored<Number>& mirrored, Number value, const at::Tensor& beside);

  std::map<std::size_t, Mirrored<double>> rates_;
  std::unordered_map<const at::TensorImpl*, Mirrored<std::int64_t>> counts_;
  std::vector<Recorded> recorded_;
};

/// What a group's update works with.
struct GroupContext {
  StepMirror& mirror;
  std::size_t index;
};

}  // namespace taas::detail
