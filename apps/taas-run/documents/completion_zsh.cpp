#include <fmt/format.h>
#include <fmt/ranges.h>

#include "documents/completion.hpp"
#include "flags/flags.hpp"

namespace taas::cli {
namespace {

constexpr std::string_view kZshHead = R"(#compdef taas-run
# Completion of taas-run for zsh. Made by: taas-run --print-completion zsh
_taas_run() {
  _arguments -s -S -A '-*' -M 'm:_=- r:|[_-]=* r:|=*' : \
)";

// As a file of fpath this text is the function's own body; `source` only defines it.
constexpr std::string_view kZshTail = R"(    '1: :_taas_run_program' '*:: :_default'
}
_taas_run_program() { _alternative 'programs:program:(train)' 'files:program:_files' }
if [ "$funcstack[1]" = _taas_run ]; then
  _taas_run "$@"
else
  compdef _taas_run taas-run
fi
)";

/// Inside of an _arguments specification brackets and colons have a meaning.
std::string escape_for_zsh(std::string_view text) {
  std::string escaped;
  for (char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string action(const Flag& flag) {
  switch (offer(flag)) {
    case Offer::kChoices:
      return fmt::format("({})", fmt::join(choices(flag), " "));
    case Offer::kFiles:
      return "_files";
    case Offer::kFolders:
      return "_files -/";
    case Offer::kNothing:
      break;
  }
  return " ";
}

std::string specification(const Flag& flag) {
  auto about = fmt::format("[{}]", escape_for_zsh(flag.help));
  if (flag.takes_value()) about += fmt::format(":{}:{}", escape_for_zsh(flag.value), action(flag));
  auto long_name = fmt::format("--{}{}", flag.name, flag.takes_value() ? "=" : "");
  if (flag.kind == Flag::Kind::kRepeatable) return in_quotes("*" + long_name + about);
  if (flag.short_name == 0) return in_quotes(long_name + about);
  auto short_name = fmt::format("-{}{}", flag.short_name, flag.takes_value() ? "+" : "");
  return fmt::format("'(-{} --{})'{{{},{}}}{}", flag.short_name, flag.name, short_name, long_name, in_quotes(about));
}

}  // namespace

std::string zsh_completion() {
  std::string script(kZshHead);
  for (const auto* flag : shown_flags()) script += fmt::format("    {} \\\n", specification(*flag));
  return script + std::string(kZshTail);
}

}  // namespace taas::cli
