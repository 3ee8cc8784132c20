#include "plan/program/source.hpp"

#include <utility>

#include "base/files.hpp"

namespace taas::plan {

std::optional<std::string> read_source(const std::string& path) {
  auto text = read_regular_file(path, kMostOfSource);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

}  // namespace taas::plan
