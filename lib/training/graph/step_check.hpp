#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace taas::detail {

/// Whether a replay does what the step itself does, from the same state: parameters, buffers, what optimizers remember,
/// the state of the generator. Memory for two copies of these is needed.
class StepCheck {
 public:
  /// `touched`: all that the step may change. Throws c10::OutOfMemoryError.
  explicit StepCheck(const std::vector<at::Tensor>& touched);

  /// Keeps what the replay has made of it, and goes back to before.
  void replayed(const at::Tensor& result);
  /// The step itself has been done, with this result: what the replay has done otherwise, or nothing.
  [[nodiscard]] std::optional<std::string> difference(const at::Tensor& result) const;
  /// All is as the replay has left it, instead of the step.
  void keep_replay();

 private:
  struct State {
    std::vector<at::Tensor> memory;
    at::Tensor generator;
  };
  State copied();
  void put_back(const State& state);

  std::vector<at::Tensor> memory_;  ///< each the whole of it
  std::vector<at::Tensor> leaves_;  ///< parameters, whose gradients stay where the recording has put them
  std::vector<at::Tensor> gradients_;
  at::Generator generator_;
  State before_;
  State after_replay_;
  at::Tensor result_;
};

}  // namespace taas::detail
