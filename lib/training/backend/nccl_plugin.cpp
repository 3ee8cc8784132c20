#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "training/backend/backends.hpp"

// nccl.cpp finds these by their names.

extern "C" void taas_make_nccl(const taas::BackendArguments& arguments, c10::intrusive_ptr<c10d::Backend>& result) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = arguments.timeout;
  result = c10::make_intrusive<c10d::ProcessGroupNCCL>(arguments.store, arguments.rank, arguments.world_size, options);
}

extern "C" void taas_nccl_versions(int& built, int& loaded) {
  built = NCCL_VERSION_CODE;
  if (ncclGetVersion(&loaded) != ncclSuccess) loaded = built;
}

/// "GPU-8a1b…" of a visible GPU, as nvidia-smi has it.
extern "C" void taas_gpu_uuid(int index, std::string& result) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  result = "GPU-";
  for (std::size_t i = 0; i < sizeof(properties.uuid.bytes); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
    result += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) result += '-';
  }
}
