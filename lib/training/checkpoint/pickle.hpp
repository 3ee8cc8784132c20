#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace taas {

/// A dictionary, or a list, of values of any kind.
c10::impl::GenericDict plain_dict();
c10::impl::GenericList plain_list();

/// Gives `write` the file that Python's torch.load(weights_only=True) reads, piece by piece: of a tensor on the CPU
/// no copy is made, and of others one at a time. `write` must not throw. Dictionaries, lists, tuples and tensors become
/// Python's own, whatever their element type is.
void pickle(const c10::IValue& value, const std::function<void(std::string_view)>& write);

/// Reads such a file, or one of torch.save. Tensors are on the CPU, wherever they were when they were saved, and each
/// is read straight into its memory. Throws UnknownObject for a whole file, and what libtorch throws for a damaged one.
c10::IValue unpickle(const std::string& path);

/// Such a file, of which tensors are read one by one. The constructor throws as unpickle() does.
class PickledFile {
 public:
  explicit PickledFile(const std::string& path);
  ~PickledFile();
  PickledFile(const PickledFile&) = delete;
  PickledFile& operator=(const PickledFile&) = delete;

  /// Its tensors say how large they are and have no memory.
  [[nodiscard]] const c10::IValue& value() const { return value_; }
  /// Reads the memory of a tensor of value(). Throws what libtorch throws for a damaged file.
  [[nodiscard]] at::Tensor read(const at::Tensor& tensor);

 private:
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
  c10::IValue value_;
};

/// The file holds something that only Python knows.
struct UnknownObject {
  std::string what;
};

}  // namespace taas
