#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace taas {

/// Writing to a buffer in place would make backward refuse graphs that used it before; what is written belongs to the
/// next forward, so the versions stay.
class KeepVersions {
 public:
  explicit KeepVersions(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const auto& tensor : tensors_) versions_.push_back(tensor._version());
  }
  ~KeepVersions() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto counter = tensors_[i].unsafeGetTensorImpl()->version_counter();  // shared with the tensor
      counter.set_version(versions_[i]);
    }
  }
  KeepVersions(const KeepVersions&) = delete;
  KeepVersions& operator=(const KeepVersions&) = delete;

 private:
  const std::vector<at::Tensor>& tensors_;
  std::vector<std::int64_t> versions_;
};

}  // namespace taas
