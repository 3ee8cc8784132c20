#pragma once

#include <memory>
#include <string>

#include "training/backend/backends.hpp"
#include "training/backend/step_graph.hpp"

namespace taas {

/// Counts the GPUs that can be used; 0 without a driver, without GPUs, or when this build has no CUDA (no_nccl.cpp).
///
/// A program that links libtorch_cuda starts 0.1 s later (1.1 s from a cold disk) and takes 250 MB more in each rank,
/// used or not. So only the plugin libtaas_nccl.so links it. Where this machine has an NVIDIA driver, and
/// CUDA_VISIBLE_DEVICES does not hide all GPUs, it is loaded before main(): ATen and autograd look once for CUDA, on
/// their first use, and would not find it later.
int cuda_device_count();

/// A name of a visible GPU that no other one has: its host, as NCCL tells hosts apart, and its UUID.
std::string gpu_name(int index);

/// Connects this rank with the others at once. Throws ConfigError when cuda_device_count() is 0.
///
/// What a rank does whose peer is lost is chosen here: TORCH_NCCL_ASYNC_ERROR_HANDLING=1, torch's older way and the
/// launcher's default, aborts the communicators before it ends the process, so that a thread that waits for a result
/// can go on with half of it. 3 ends the process and leaves them alone.
c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments& arguments, int gpu);

/// An empty graph of a visible GPU. Throws ConfigError when cuda_device_count() is 0.
std::unique_ptr<detail::StepGraph> make_step_graph(int gpu);

}  // namespace taas
