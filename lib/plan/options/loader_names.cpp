#include "plan/options/loader_names.hpp"

#include <algorithm>
#include <cctype>

namespace taas::plan {
namespace {

bool is_dotted_name(std::string_view part) {
  return !part.empty() && std::none_of(part.begin(), part.end(), [](unsigned char letter) {
    return letter < 0x80 && std::isalnum(letter) == 0 && letter != '_' && letter != '.';
  });
}

}  // namespace

Result<> check_loader_name(std::string_view name) {
  auto colon = name.find(':');
  if (colon != name.npos && is_dotted_name(name.substr(0, colon)) && is_dotted_name(name.substr(colon + 1))) return {};
  return usage_error("not MODULE:NAME, such as data:train_loader; --loader may be repeated");
}

}  // namespace taas::plan
