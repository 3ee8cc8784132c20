#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "training/ddp/precision/grad_accumulator.hpp"

namespace taas {

/// One parameter, whose values can be replaced by a copy in another type for a while.
class LoweredParameter {
 public:
  /// Unset `type`: that of the parameter.
  LoweredParameter(at::Tensor parameter, std::optional<at::ScalarType> type);
  /// With the full values again.
  ~LoweredParameter();
  LoweredParameter(LoweredParameter&&) noexcept = default;
  LoweredParameter(const LoweredParameter&) = delete;
  LoweredParameter& operator=(const LoweredParameter&) = delete;

  const at::Tensor& parameter() const { return parameter_; }
  bool changes_type() const { return type_ != full_type_; }

  /// Values are copied now; nothing where they are low already.
  void lower();
  void raise();
  bool is_low() const { return full_.defined(); }
  void lower_gradient() { cast_gradient(type_); }
  void raise_gradient() { cast_gradient(full_type_); }
  /// Through `type`, whose precision it has then.
  void round_gradient(at::ScalarType type);

  /// Calls `tell` in each backward once the gradient is there, until unwatch(). Another type has another node of the
  /// graph for that: call it after lower(), with gradients enabled. A second call for the same node does nothing.
  void watch(std::function<void()> tell);
  void unwatch();

 private:
  void cast_gradient(at::ScalarType type);

  at::Tensor parameter_;
  at::ScalarType full_type_;
  at::ScalarType type_;
  at::Tensor full_;  ///< defined while the parameter is low
  GradAccumulator accumulator_;
  std::uintptr_t hook_ = 0;
};

}  // namespace taas
