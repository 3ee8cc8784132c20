#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <string_view>

#include "training/checkpoint/zip_file.hpp"

// The files of huggingface.co/docs/safetensors: eight bytes with the length of a header in JSON, the header, and the
// tensors' bytes.

namespace taas {

/// By its first bytes.
bool is_safetensors(const std::string& path);
/// A dictionary of tensors, with "__metadata__" where there is some. Throws CheckpointError, which names the path.
c10::IValue read_safetensors(const std::string& path, const ReadOptions& options);
/// Throws CheckpointError for what such a file cannot have.
void write_safetensors(const c10::IValue& value, const std::function<void(std::string_view)>& write);

}  // namespace taas
