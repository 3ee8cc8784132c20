#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

/// A pickle of protocol 2, which is torch.save's, in its instructions, each with what belongs to it.
using PickleInstructions = std::vector<std::string_view>;

/// Views of the pickle's bytes; none: an instruction is not one of protocol 2.
std::optional<PickleInstructions> instructions_of(std::string_view pickle);

/// Python's state dicts are OrderedDicts with an attribute (`_metadata`), neither of which libtorch's unpickler reads.
/// This pickle has plain dictionaries instead, and in place of each object with attributes a pair of itself and them.
std::string without_ordered_dicts(const PickleInstructions& pickle);

/// The first class in a pickle that is neither torch's nor OrderedDict, as in "numpy.dtype".
std::optional<std::string> foreign_class(const PickleInstructions& pickle);

/// The unpickled value without the attributes, which stand in pairs.
c10::IValue without_attributes(const c10::IValue& value);

}  // namespace taas
