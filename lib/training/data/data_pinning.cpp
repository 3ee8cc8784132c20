#include "training/data/data_pinning.hpp"

#include <ATen/Context.h>

#include <memory>
#include <string>

#include "data/memory/cuda_copier.hpp"
#include "training/backend/nccl.hpp"
#include "training/data/data_events.hpp"

namespace taas {
namespace {

void say_once(const std::string& problem) {
  static bool said = false;
  if (!said) remark_on_data(problem + "; batches are copied once more on their way to the GPU");
  said = true;
}

/// Of this process; null where CUDA is not as it is expected. It is there to the end: CUDA may be gone before.
const std::shared_ptr<data::CudaCopier>& process_copier() {
  static const auto* copier = [] {
    auto cuda = data::CudaLibrary::of_program();
    if (!cuda) say_once("memory of batches cannot be registered with CUDA (" + cuda.error().message + ")");
    return new std::shared_ptr(cuda ? std::make_shared<data::CudaCopier>(*cuda) : nullptr);
  }();
  return *copier;
}

}  // namespace

void pin_memory_of(data::Client& client) {
  if (!at::hasCUDA()) return;
  const auto& copier = process_copier();
  if (!copier) return;
  for (int device : copier->new_devices()) copier->add_streams(device, cuda_streams(device));
  if (copier->is_ready()) client.use(copier);
  if (auto problem = copier->problem(); !problem.empty()) say_once(problem);
}

Tensors pinned(Tensors tensors) {
  if (!at::hasCUDA() || cuda_device_count() == 0) return tensors;
  for (auto& tensor : tensors) tensor = tensor.pin_memory();
  return tensors;
}

}  // namespace taas
