#pragma once

#include "dist/backends.hpp"

namespace taas {

/// Loads libtorch's CUDA half on the first call, when this machine has an NVIDIA driver, and counts the GPUs that can
/// be used; 0 without a driver, without GPUs, or when this build has no CUDA (no_nccl.cpp).
///
/// A program that links libtorch_cuda starts 0.1 s later (1.1 s from a cold disk) and takes 250 MB more in each rank,
/// used or not. So only the plugin libtaas_nccl.so links it.
int cuda_device_count();

/// Throws ConfigError when cuda_device_count() is 0.
c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments& arguments);

}  // namespace taas
