#pragma once

#include <memory>
#include <string>

#include "training/backend/backends.hpp"
#include "training/backend/step_graph.hpp"

namespace taas {

/// What libtaas_nccl.so exports, found by name.
inline constexpr const char* kNcclPlugin = "libtaas_nccl.so";
inline constexpr const char* kMakeNccl = "taas_make_nccl";
inline constexpr const char* kGpuUuid = "taas_gpu_uuid";
inline constexpr const char* kMakeStepGraph = "taas_make_step_graph";
/// Fills `result`; lets c10 exceptions pass.
using MakeNccl = void (*)(const BackendArguments& arguments, c10::intrusive_ptr<c10d::Backend>& result);
/// "GPU-8a1b…" of a visible GPU, as nvidia-smi has it; lets c10 exceptions pass.
using GpuUuid = void (*)(int index, std::string& result);
/// Fills `result` with an empty graph of a visible GPU.
using MakeStepGraph = void (*)(int gpu, std::unique_ptr<detail::StepGraph>& result);

}  // namespace taas
