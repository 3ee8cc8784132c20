#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

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
/// The same from a stream that can seek.
c10::IValue unpickle(std::istream& file);

/// The file holds something that only Python knows.
struct UnknownObject {
  std::string what;
};

}  // namespace taas
