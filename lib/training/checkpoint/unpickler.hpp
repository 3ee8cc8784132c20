#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <string_view>

namespace taas {

/// Gives the memory that a tensor of a pickle is in, by its name in the file and the bytes that it has at least.
using ReadStorage = std::function<c10::Storage(const std::string& name, std::uint64_t bytes)>;

/// What torch.load(weights_only=True) reads, but for classes of tensors: tensors (also sparse and of any type), numbers
/// and None, strings and bytes (as strings), lists and sets (as lists), tuples, dictionaries of all kinds, dtypes (as
/// "torch.float16") and devices. What a state dict has besides its tensors (`_metadata`) is left out. Tensors of one
/// storage share it here, too. Throws UnknownObject for what else Python can save, and std::exception where the
/// instructions are damaged.
c10::IValue unpickled(std::string_view pickle, const ReadStorage& read_storage);

/// The file holds something that only Python knows.
struct UnknownObject {
  std::string what;
};

}  // namespace taas
