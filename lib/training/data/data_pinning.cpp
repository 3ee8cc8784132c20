#include "training/data/data_pinning.hpp"

#include <ATen/Context.h>

#include <utility>

#include "training/backend/nccl.hpp"

namespace taas {
namespace {

/// Whether the program has a context on one already: to pin memory makes one otherwise.
bool uses_a_gpu() {
  if (!at::hasCUDA()) return false;
  const auto& hooks = at::detail::getCUDAHooks();
  const int count = cuda_device_count();
  for (int device = 0; device < count; ++device) {
    if (hooks.hasPrimaryContext(static_cast<c10::DeviceIndex>(device))) return true;
  }
  return false;
}

}  // namespace

Tensors pinned(Tensors tensors) {
  if (!uses_a_gpu()) return tensors;
  for (auto& tensor : tensors) tensor = tensor.pin_memory();
  return tensors;
}

}  // namespace taas
