#include "documents/flags_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "flags/flags.hpp"

namespace taas::cli {
namespace {

constexpr std::size_t kColumns = 100;

constexpr std::string_view kHead = R"(# Flags

Made by `taas-run --print-flags-page`; a test compares the two. [torchrun](torchrun.md) says what
torchrun's own flags mean here, [environment](environment.md) has the variables that are not flags.

Every flag may stand in a file, too (`--config run.toml`): `nproc-per-node = 4`, `tee = "3"`,
`dry-run = true`. The command line comes before `PET_*`, and that before the file. Names may be
spelled with `-` or `_`, and cut short while they are unique.
)";

/// Words of `text` in lines of kColumns, the further ones indented.
std::string wrapped(std::string_view text, std::string_view indent) {
  std::string lines;
  std::size_t column = 0;
  while (!text.empty()) {
    auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > kColumns) {
      lines += fmt::format("\n{}", indent);
      column = indent.size();
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

/// What Markdown would take for something else stands for itself.
std::string escaped(std::string_view text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '<' || letter == '*' || letter == '_') safe += '\\';
    safe += letter;
  }
  return safe;
}

std::string page_entry(const Flag& flag) {
  auto name = flag.short_name == 0 ? std::string() : fmt::format("`-{}`, ", flag.short_name);
  name += flag.takes_value() ? fmt::format("`--{} {}`", flag.name, flag.value) : fmt::format("`--{}`", flag.name);
  auto variable =
      flag.origin == Flag::Origin::kTorchrun ? fmt::format(" Variable: `{}`.", pet_variable(flag.name)) : std::string();
  return wrapped(fmt::format("- {}: {}.{}", name, escaped(flag.help), variable), "  ");
}

}  // namespace

std::string flags_page() {
  std::string page(kHead);
  for (const auto& group : flag_groups()) {
    page += fmt::format("\n## {}\n\n", group.heading);
    for (const auto& flag : group.flags) {
      if (flag.origin != Flag::Origin::kInternal) page += page_entry(flag);
    }
  }
  return page;
}

}  // namespace taas::cli
