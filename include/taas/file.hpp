#pragma once

#include <ATen/core/ivalue.h>

#include <string>

namespace taas {

struct LoadOptions {
  /// Tensors are the file's own memory, read when they are used: what is written to them stays in this process. The
  /// file must not be changed meanwhile; that another takes its name (as save_file() does it) is no change.
  bool mapped = false;
  /// Bytes of tensors are compared with the CRC-32 that files of torch.save have for them. safetensors have none.
  bool check = true;
};

/// What torch.save has written and torch.load(path, weights_only=True) would read, of any form, or a safetensors file:
///
///     auto file = taas::load_file("checkpoint.ckpt");
///     taas::load_state_dict(*net, file.toGenericDict().at("model_state_dict"));
///
/// Tensors are on the CPU, of any type; lists and sets are lists, tuples tuples, dictionaries of all kinds
/// dictionaries; bytes are strings, and dtypes too ("torch.float16"). A safetensors file is a dictionary of tensors by
/// name, with its
/// "__metadata__" where it has some. Throws CheckpointError, which names the path, for a missing, cut off, damaged or
/// foreign file, and for objects of Python's classes, which it names.
c10::IValue load_file(const std::string& path, const LoadOptions& options = {});

/// Writes a tree of dictionaries, lists, tuples, tensors, numbers and strings, whole or not at all: as safetensors
/// where the path ends in ".safetensors" (a dictionary of dense tensors, and "__metadata__" of strings), and otherwise
/// as torch.save does. Throws CheckpointError, which names the path, and leaves no partial file.
void save_file(const std::string& path, const c10::IValue& value);

}  // namespace taas
