#include "training/hooks/matrices.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace taas {

Matrices::Matrices(const std::vector<at::Tensor>& gradients, bool batch_same_shapes) {
  std::vector<std::vector<at::Tensor>> by_shape;
  for (const auto& gradient : gradients) {
    const auto same = std::find_if(by_shape.begin(), by_shape.end(), [&](const std::vector<at::Tensor>& group) {
      return group[0].sizes() == gradient.sizes();
    });
    if (same == by_shape.end()) {
      by_shape.push_back({gradient});
    } else {
      same->push_back(gradient);
    }
  }
  for (const auto& of_one_shape : by_shape) add(of_one_shape, batch_same_shapes);
}

void Matrices::add(const std::vector<at::Tensor>& of_one_shape, bool batch) {
  if (batch && of_one_shape.size() > 1) {
    tensors_.push_back(at::stack(of_one_shape));
    gradients_.push_back(of_one_shape);
    return;
  }
  for (const auto& gradient : of_one_shape) {
    tensors_.push_back(gradient.unsqueeze(0));
    gradients_.push_back({gradient});
  }
}

void Matrices::write_back() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (gradients_[i].size() == 1) continue;  // a view
    for (std::size_t k = 0; k < gradients_[i].size(); ++k) {
      gradients_[i][k].copy_(tensors_[i][static_cast<std::int64_t>(k)]);
    }
  }
}

std::vector<at::Tensor> factors_in(const at::Tensor& memory, const std::vector<at::Tensor>& matrices,
                                   std::int64_t dimension, std::int64_t rank) {
  std::vector<at::Tensor> factors;
  std::int64_t at = 0;
  for (const auto& matrix : matrices) {
    const auto columns = std::min({matrix.size(1), matrix.size(2), rank});
    const auto numel = matrix.size(0) * matrix.size(dimension) * columns;
    factors.push_back(memory.slice(0, at, at + numel).view({matrix.size(0), matrix.size(dimension), columns}));
    at += numel;
  }
  return factors;
}

}  // namespace taas
