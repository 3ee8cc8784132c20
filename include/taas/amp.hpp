#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace torch::optim {
class Optimizer;
}

// Automatic mixed precision, as Python's torch.amp: the forward pass and the loss under Autocast, and for float16 a
// GradScaler between the loss and the optimizer.

namespace taas {

struct AutocastOptions {
  /// That of the operations which are safe in it. By default torch's: float16 on a GPU, bfloat16 on the CPU.
  std::optional<c10::ScalarType> dtype{};
  bool enabled = true;        ///< false: as without autocast, also within an outer Autocast
  bool cache_enabled = true;  ///< weights are converted once for each outermost Autocast
};

/// While it lives, operations of this thread on `device_type` convert their inputs as torch.autocast does. May be
/// nested. Backward passes belong outside of it: they run in the types of their forward operations.
class Autocast {
 public:
  /// Throws InvalidArgument for a type other than float16 and bfloat16.
  explicit Autocast(c10::DeviceType device_type, const AutocastOptions& options = {});
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  c10::DeviceType device_type_;
  bool enabled_before_;
  c10::ScalarType dtype_before_;
  bool cache_before_;
};

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;   ///< above 1: after growth_interval steps in a row without infinite gradients
  double backoff_factor = 0.5;  ///< below 1: after a step with them, which is left out
  std::int64_t growth_interval = 2000;
  bool enabled = true;  ///< false: each function does what a program without a scaler would
};

/// Multiplies the loss so that gradients in float16 do not become 0, as Python's torch.amp.GradScaler, with the same
/// numbers to the bit:
///
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);            // only where gradients are looked at, as in clipping
///     scaler.step(optimizer);
///     scaler.update();
///
/// Functions called in another order throw InvalidArgument. Ranks with DistributedDataParallel have the same gradients,
/// and so leave out the same steps.
class GradScaler {
 public:
  /// Throws InvalidArgument for factors on the wrong side of 1.
  explicit GradScaler(const GradScalerOptions& options = {});
  GradScaler(GradScaler&&) noexcept = default;
  GradScaler& operator=(GradScaler&&) noexcept = default;

  /// `outputs` times the scale. The scale's own tensor, float32, is made on the device of the first outputs.
  at::Tensor scale(const at::Tensor& outputs);

  /// Divides the optimizer's gradients by the scale, in place, and notes whether one is infinite or not a number. Once
  /// for each step. Throws InvalidArgument for gradients in float16.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// The optimizer's step, after unscale_() where that was not called; false: it is left out, since a gradient is not
  /// finite. Waits for the GPU.
  bool step(torch::optim::Optimizer& optimizer);

  /// Once at the end of an iteration, after the steps of all optimizers: raises or lowers the scale, or sets it.
  void update(std::optional<double> new_scale = std::nullopt);

  /// 1 where it is not enabled. Waits for the GPU.
  [[nodiscard]] double get_scale() const;
  /// Steps in a row without infinite gradients.
  [[nodiscard]] std::int64_t growth_tracker() const;
  [[nodiscard]] bool is_enabled() const { return options_.enabled; }

  /// For Checkpoint::extra, with the names of Python's state_dict(): "scale", "growth_factor", "backoff_factor",
  /// "growth_interval", "_growth_tracker". To be called after update(). An empty dictionary where it is not enabled.
  [[nodiscard]] c10::IValue state() const;
  /// Goes on from there; Python's is read as well. Throws CheckpointError for anything else.
  void load_state(const c10::IValue& state);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct ScaledOptimizer {
    Stage stage = Stage::kReady;
    std::vector<at::Tensor> found;  ///< by device and type of the gradients: 1 where one is not finite, otherwise 0
  };

  GradScalerOptions options_;
  std::int64_t first_tracker_ = 0;
  /// Undefined before the first outputs.
  at::Tensor scale_, tracker_;
  /// Those that were unscaled or stepped since the last update().
  std::map<const torch::optim::Optimizer*, ScaledOptimizer> optimizers_;
};

}  // namespace taas
