#pragma once

#include "dist/backends.hpp"

namespace taas {

/// What libtaas_nccl.so exports, found by name.
inline constexpr const char* kNcclPlugin = "libtaas_nccl.so";
inline constexpr const char* kMakeNccl = "taas_make_nccl";
/// Fills `result`; lets c10 exceptions pass.
using MakeNccl = void (*)(const BackendArguments& arguments, c10::intrusive_ptr<c10d::Backend>& result);

}  // namespace taas
