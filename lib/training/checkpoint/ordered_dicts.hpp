#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <string_view>

namespace taas {

/// Python's state dicts are OrderedDicts with an attribute (`_metadata`), neither of which libtorch's unpickler reads.
/// In the bytes of a pickle of protocol 2, which is torch.save's, this makes plain dictionaries of OrderedDicts, and of
/// each object with attributes a pair of itself and them. A pickle with an instruction that is not known here stays as
/// it is.
std::string without_ordered_dicts(std::string_view pickle);

/// Whether such a pickle has an instruction that protocol 2 does not: then its bytes have changed.
bool is_damaged(std::string_view pickle);

/// The first class in such a pickle that is neither torch's nor OrderedDict, as in "numpy.dtype".
std::optional<std::string> foreign_class(std::string_view pickle);

/// The unpickled value without the attributes, which stand in pairs.
c10::IValue without_attributes(const c10::IValue& value);

}  // namespace taas
