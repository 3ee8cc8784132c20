#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/hooks/staged_hook.hpp"

namespace taas {
namespace {

constexpr double kLargest = 255;  // of 8 bits without a sign

/// (2, channels): the scale and the zero point of each channel, from its smallest and largest element (channels,).
/// torch's MinMaxObserver, quint8, affine: s = (max - min) / 255, z = -round(min / s), with 0 among the values.
at::Tensor quantization_parameters(const at::Tensor& smallest, const at::Tensor& largest) {
  if (!at::isfinite(largest - smallest).all().item<bool>()) {
    throw InvalidArgument(
        "gradients that are not finite cannot be quantized: look at the loss, or use another communication hook");
  }
  const auto low = at::minimum(smallest, at::zeros_like(smallest));
  const auto high = at::maximum(largest, at::zeros_like(largest));
  const auto epsilon = at::full({1}, std::numeric_limits<float>::epsilon(), low.options());
  const auto scale = at::maximum((high - low) / kLargest, epsilon);
  const auto zero_point = at::clamp(0 - at::round(low / scale).to(at::kInt), 0, kLargest);
  return at::stack({scale, zero_point.to(at::kFloat)});
}

/// `values` (channels, elements) as 8 bit numbers. Scale and zero point are numbers to torch, and give way to the type
/// of the values: rounded to it after each operation.
at::Tensor quantize(const at::Tensor& values, const at::Tensor& scale, const at::Tensor& zero_point) {
  const auto type = values.scalar_type();
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const auto steps = at::round((values.to(wide) / scale.unsqueeze(1)).to(type));
  const auto moved = (steps.to(wide) + zero_point.unsqueeze(1)).to(type);
  return at::clamp(moved, 0, kLargest).to(at::kByte);
}

at::Tensor dequantize(const at::Tensor& quantized, const at::Tensor& scale, const at::Tensor& zero_point) {
  return scale.unsqueeze(1) * (quantized.to(at::kFloat) - zero_point.unsqueeze(1));
}

/// (1, numel), or (channels, channel_size) filled up with zeros: by a whole channel where nothing is missing.
at::Tensor in_channels(const at::Tensor& buffer, std::int64_t channel_size) {
  if (channel_size == 0) return buffer.view({1, -1});
  return at::constant_pad_nd(buffer, {0, channel_size - buffer.numel() % channel_size}).view({-1, channel_size});
}

/// Rows of all ranks, and their way here.
struct Gathered {
  at::Tensor rows;
  Work work;
};

Gathered start_gather(const ProcessGroup& group, const at::Tensor& mine) {
  std::vector<std::int64_t> shape{group.world_size()};
  shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
  auto rows = at::zeros(shape, mine.options());
  auto work = all_gather_async(group, rows, mine);
  return {std::move(rows), std::move(work)};
}

/// One bucket: the parameters of all ranks, then their quantized gradients.
class QuantizedBucket {
 public:
  QuantizedBucket(ProcessGroup group, const at::Tensor& buffer, std::int64_t channel_size)
      : group_(std::move(group)), buffer_(buffer), channels_(in_channels(buffer, channel_size)) {}

  at::Tensor gather_parameters() {
    const auto values = channels_.detach().to(at::kFloat);
    const auto [smallest, largest] = at::aminmax(values, 1);
    parameters_ = start_gather(group_, quantization_parameters(smallest, largest).contiguous());
    return {};
  }

  at::Tensor gather_quantized() {
    parameters_->work.wait();
    const auto mine = parameters_->rows[group_.rank()];
    quantized_ = start_gather(group_, quantize(channels_, mine[0], mine[1]));
    return {};
  }

  at::Tensor average() {
    quantized_->work.wait();
    auto sum = at::zeros(channels_.sizes(), channels_.options().dtype(at::kFloat));
    for (int rank = 0; rank < group_.world_size(); ++rank) {
      const auto parameters = parameters_->rows[rank];
      sum += dequantize(quantized_->rows[rank], parameters[0], parameters[1]);
    }
    return sum.flatten().slice(0, 0, buffer_.numel()) / group_.world_size();
  }

 private:
  ProcessGroup group_;
  at::Tensor buffer_;
  at::Tensor channels_;
  std::optional<Gathered> parameters_;
  std::optional<Gathered> quantized_;
};

class QuantizationHook : public StagedHook {
 public:
  QuantizationHook(std::string name, ProcessGroup group, std::int64_t channel_size)
      : name_(std::move(name)), group_(std::move(group)), channel_size_(channel_size) {}
  std::string name() const override { return name_; }

 private:
  std::vector<Stage> stages(const GradBucket& bucket) override {
    auto work = std::make_shared<QuantizedBucket>(group_, bucket.buffer(), channel_size_);
    return {[work] { return work->gather_parameters(); }, [work] { return work->gather_quantized(); },
            [work] { return work->average(); }};
  }

  std::string name_;
  ProcessGroup group_;
  std::int64_t channel_size_;  ///< 0: all of the bucket
};

}  // namespace

std::shared_ptr<CommHook> quantization_pertensor_hook(ProcessGroup group) {
  return std::make_shared<QuantizationHook>("quantization_pertensor_hook", std::move(group), 0);
}

std::shared_ptr<CommHook> quantization_perchannel_hook(ProcessGroup group, std::int64_t bucket_size) {
  if (bucket_size < 1) throw InvalidArgument("bucket_size must be at least 1, not " + std::to_string(bucket_size));
  return std::make_shared<QuantizationHook>("quantization_perchannel_hook", std::move(group), bucket_size);
}

}  // namespace taas
