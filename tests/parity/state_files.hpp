// Raw float32 files of what a model has: parameters, then floating point buffers. A number of 64 bits is its float32
// and the float32 of the rest.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
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

/// Each once, as in Python: libtorch's parameters() has those of a module with two names twice.
inline std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> once;
  for (const auto& parameter : module.parameters()) {
    const auto same = [&](const at::Tensor& other) { return other.is_same(parameter); };
    if (std::none_of(once.begin(), once.end(), same)) once.push_back(parameter);
  }
  return once;
}

inline std::vector<at::Tensor> state_of(const torch::nn::Module& module) {
  auto tensors = parameters_of(module);
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
  const auto write = [&](const at::Tensor& values) {
    file.write(static_cast<const char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  };
  for (const auto& tensor : state_of(module)) {
    const auto values = tensor.detach().to(at::kFloat).contiguous();
    write(values);
    if (tensor.scalar_type() == at::kDouble) write((tensor.detach() - values).to(at::kFloat).contiguous());
  }
}

}  // namespace parity
