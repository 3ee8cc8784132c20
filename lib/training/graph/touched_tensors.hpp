#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <functional>
#include <memory>
#include <vector>

namespace taas::detail {

/// Notes, as long as it lives, which memory of a device torch's operators may write to that was there before, and that
/// others have as well when it is asked.
/// Operators of all threads count.
class TouchedTensors {
 public:
  /// `first_seen` is called before an operator may write to a tensor for the first time.
  explicit TouchedTensors(c10::DeviceType device, std::function<void(const at::Tensor&)> first_seen = {});
  ~TouchedTensors();
  TouchedTensors(const TouchedTensors&) = delete;
  TouchedTensors& operator=(const TouchedTensors&) = delete;

  /// For each memory the first tensor that was seen in it.
  [[nodiscard]] std::vector<at::Tensor> tensors() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

/// All of a tensor's memory, in its type; the same whatever part of it the tensor is.
at::Tensor whole_memory_of(const at::Tensor& tensor);

}  // namespace taas::detail
