#include "plan/options/loader_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace taas::plan {
namespace {

bool is_dotted_name(std::string_view part) {
  return !part.empty() && std::none_of(part.begin(), part.end(), [](unsigned char letter) {
    return letter < 0x80 && std::isalnum(letter) == 0 && letter != '_' && letter != '.';
  });
}

bool is_attribute(std::string_view name) {
  auto colon = name.find(':');
  return colon != name.npos && is_dotted_name(name.substr(0, colon)) && is_dotted_name(name.substr(colon + 1));
}

}  // namespace

Result<> check_loader_name(std::string_view name) {
  if (name.empty()) return usage_error("the name is empty");
  if (name.find(',') != name.npos) return usage_error("one name at a time: --loader may be repeated");
  bool printable = std::none_of(name.begin(), name.end(), [](unsigned char letter) { return std::iscntrl(letter); });
  return printable ? Result<>() : usage_error("a name has no control characters");
}

Result<> check_python_loaders(std::string_view names) {
  while (!names.empty()) {
    auto name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    if (is_attribute(name)) continue;
    return usage_error(fmt::format("--loader {}: not MODULE:NAME, such as data:train_loader", name));
  }
  return {};
}

}  // namespace taas::plan
