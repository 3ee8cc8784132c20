#include "batch_source.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "resnet50.hpp"

namespace taas::train {
namespace {

constexpr double kMean = 0.1307, kDeviation = 0.3081;  // of the pixels of MNIST, 0…1

class DigitSource : public BatchSource {
 public:
  DigitSource(const DigitSet& digits, c10::Device device) {
    auto count = static_cast<std::int64_t>(digits.size());
    auto labels = at::empty({count}, at::kByte);
    auto images = at::empty({count, 1, kDigitSide, kDigitSide}, at::kByte);
    std::copy(digits.labels.begin(), digits.labels.end(), labels.mutable_data_ptr<std::uint8_t>());
    std::copy(digits.pixels.begin(), digits.pixels.end(), images.mutable_data_ptr<std::uint8_t>());
    images_ = images.to(device);
    labels_ = labels.to(device, at::kLong);
  }

  std::int64_t size() const override { return labels_.size(0); }

  Batch batch(const at::Tensor& indices) const override {
    auto chosen = indices.to(images_.device());
    auto images = images_.index_select(0, chosen).to(at::kFloat);
    return {images.div_(255).sub_(kMean).div_(kDeviation), labels_.index_select(0, chosen)};
  }

  at::Tensor loss(const at::Tensor& output, const at::Tensor& labels) const override {
    return at::nll_loss(output, labels);
  }

 private:
  at::Tensor images_;  // uint8 (size, 1, 28, 28)
  at::Tensor labels_;  // int64 (size)
};

/// Inputs and what the model should make of them, with the mean of squares as the loss.
class RandomSource : public BatchSource {
 public:
  RandomSource(const at::Tensor& inputs, const at::Tensor& labels, c10::Device device)
      : inputs_(inputs.to(device)), labels_(labels.to(device)) {}

  std::int64_t size() const override { return labels_.size(0); }

  Batch batch(const at::Tensor& indices) const override {
    auto chosen = indices.to(inputs_.device());
    return {inputs_.index_select(0, chosen), labels_.index_select(0, chosen)};
  }

  at::Tensor loss(const at::Tensor& output, const at::Tensor& labels) const override {
    return at::mse_loss(output, labels);
  }

 private:
  at::Tensor inputs_;
  at::Tensor labels_;
};

}  // namespace

std::unique_ptr<BatchSource> make_digit_source(const DigitSet& digits, c10::Device device) {
  return std::make_unique<DigitSource>(digits, device);
}

std::unique_ptr<BatchSource> make_random_source(const Options& options, c10::Device device) {
  auto generator = at::detail::createCPUGenerator(options.seed);
  const auto count = static_cast<std::int64_t>(options.train_images.value_or(1));
  const auto normal = [&](const std::vector<std::int64_t>& sizes) { return at::randn(sizes, generator); };
  if (options.model == "toy") return std::make_unique<RandomSource>(normal({count, 10}), normal({count, 5}), device);
  if (options.model == "dummy") return std::make_unique<RandomSource>(normal({count, 4}), normal({count, 2}), device);
  auto classes = at::randint(kResNetClasses, {count, 1}, generator, at::TensorOptions(at::kLong));
  auto labels = at::zeros({count, kResNetClasses}).scatter_(1, classes, 1);
  return std::make_unique<RandomSource>(normal({count, 3, options.image_size, options.image_size}), labels, device);
}

}  // namespace taas::train
