// Raw float32 files of what a model has: parameters, then floating point buffers.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace parity {

inline at::Tensor read_floats(const std::filesystem::path& path) {
  const auto bytes = std::filesystem::file_size(path);
  auto floats = at::empty({static_cast<std::int64_t>(bytes / sizeof(float))}, at::kFloat);
  std::ifstream(path, std::ios::binary)
      .read(static_cast<char*>(floats.data_ptr()), static_cast<std::streamsize>(bytes));
  return floats;
}

inline std::vector<at::Tensor> state_of(const torch::nn::Module& module) {
  auto tensors = module.parameters();
  for (const auto& buffer : module.buffers()) {
    if (buffer.defined() && buffer.is_floating_point()) tensors.push_back(buffer);
  }
  return tensors;
}

/// `wrong` is added: for a rank whose values the wrapper has to replace.
inline void load_initial(const torch::nn::Module& module, const at::Tensor& values, double wrong = 0) {
  at::NoGradGuard no_grad;
  std::int64_t at = 0;
  for (auto& tensor : state_of(module)) {
    tensor.copy_(values.slice(0, at, at + tensor.numel()).view_as(tensor)).add_(wrong);
    at += tensor.numel();
  }
}

inline void write_state(const torch::nn::Module& module, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& tensor : state_of(module)) {
    const auto values = tensor.detach().to(at::kFloat).contiguous();
    file.write(static_cast<const char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  }
}

}  // namespace parity
