#include "documents/completion.hpp"

#include <fmt/format.h>

#include "flags/flags.hpp"

namespace taas::cli {

Result<std::string> completion(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  return usage_error("not one of bash, zsh, fish");
}

Offer offer(const Flag& flag) {
  if (flag.value == "FILE" || flag.value == "PATH") return Offer::kFiles;
  if (flag.value == "DIR") return Offer::kFolders;
  return choices(flag).empty() ? Offer::kNothing : Offer::kChoices;
}

std::vector<const Flag*> shown_flags() {
  std::vector<const Flag*> shown;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      if (flag.origin != Flag::Origin::kInternal) shown.push_back(&flag);
    }
  }
  return shown;
}

std::string spelled(const Flag& flag) {
  return flag.short_name == 0 ? fmt::format("--{}", flag.name) : fmt::format("--{} -{}", flag.name, flag.short_name);
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

}  // namespace taas::cli
