#include "training/graph/step_mirror.hpp"

#include <ATen/ops/full.h>

#include <string>

#include "taas/error.hpp"
#include "training/graph/recording.hpp"

namespace taas {

namespace detail {

void StepMirror::start_step(const char* optimizer) {
  if (!recording()) return;
  if (!kernels.capturable) {
    throw InvalidArgument(std::string("taas::") + optimizer +
                          " cannot be recorded, since its rate and its counts are on the CPU: make it with "
                          "{.capturable = true}");
  }
  recorded_.clear();
}

template <class Number>
void StepMirror::Mirrored<Number>::set(Number value) {
  if (!tensor.defined() || number == value) return;
  tensor.fill_(value);
  number = value;
}

template <class Number>
at::Tensor StepMirror::current(Mirrored<Number>& mirrored, Number value, const at::Tensor& beside) {
  if (mirrored.tensor.defined()) {
    if (!recording()) mirrored.set(value);
  } else {
    if (recording())
      throw InvalidArgument("a parameter had no step before its first recorded one: give more warm-up steps");
    mirrored.tensor = at::full({}, value, at::TensorOptions(at::kFloat).device(beside.device()));
    mirrored.number = value;
  }
  return mirrored.tensor;
}

at::Tensor StepMirror::rate(std::size_t group, double rate, const at::Tensor& beside) {
  return current(rates_[group], rate, beside);
}

at::Tensor StepMirror::count(const at::Tensor& parameter, std::int64_t steps) {
  return current(counts_[parameter.unsafeGetTensorImpl()], steps, parameter);
}

void StepMirror::counted(const at::Tensor& parameter) { ++counts_.at(parameter.unsafeGetTensorImpl()).number; }

void StepMirror::refresh_rate(std::size_t group, double rate) {
  if (auto known = rates_.find(group); known != rates_.end()) known->second.set(rate);
}

void StepMirror::refresh_count(const at::Tensor& parameter, std::int64_t steps) {
  auto known = counts_.find(parameter.unsafeGetTensorImpl());
  if (known != counts_.end()) known->second.set(steps);
}

}  // namespace detail

RecordableOptimizer::RecordableOptimizer(const OptimizerKernels& kernels)
    : mirror_(std::make_unique<detail::StepMirror>(kernels)) {}
RecordableOptimizer::RecordableOptimizer(RecordableOptimizer&&) noexcept = default;
RecordableOptimizer::~RecordableOptimizer() = default;
const OptimizerKernels& RecordableOptimizer::kernels() const { return mirror_->kernels; }

}  // namespace taas
