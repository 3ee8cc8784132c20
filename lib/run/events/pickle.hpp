#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string_view>

namespace taas::run {

/// Reads a pickle of plain data: None, booleans, numbers, strings, lists, tuples and dicts with strings as keys, in any
/// protocol from 2 to 5 (the opcodes are documented in Python's pickletools). Nothing is ever executed: a pickle that
/// names a class or a function is refused, like any other that is not wholly understood, or would take more than about
/// 128 MiB. Tuples become arrays.
std::optional<boost::json::value> read_pickle(std::string_view bytes);

}  // namespace taas::run
