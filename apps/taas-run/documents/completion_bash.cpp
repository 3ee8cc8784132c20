#include <fmt/format.h>
#include <fmt/ranges.h>

#include "documents/completion.hpp"
#include "flags/flags.hpp"

namespace taas::cli {
namespace {

constexpr std::string_view kBashHead =
    R"(# Completion of taas-run for bash. Made by: taas-run --print-completion bash
_taas_run() {
  local word=${COMP_WORDS[COMP_CWORD]} option='' i
)";

// bash has taken "--color=never" apart into three words. After the program's name every word is the program's.
constexpr std::string_view kFindOption = R"(
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ -n "$option" ]; then
      [ "${COMP_WORDS[i]}" = '=' ] || option=''
      continue
    fi
    case ${COMP_WORDS[i]} in
      --) return ;;
      =) option='=' ;;
      -*) [[ $valued != *" ${COMP_WORDS[i]//_/-} "* ]] || option=${COMP_WORDS[i]//_/-} ;;
      *) return ;;
    esac
  done
  [ "$word" != '=' ] || word=''
  case $option in
    '') ;;
)";

constexpr std::string_view kBashTail = R"(    *)
      compopt +o default +o bashdefault
      return
      ;;
  esac
  case $word in
    -*)
      compopt +o default +o bashdefault
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "${word//_/-}")
      ;;
    *)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word"; compgen -W train -- "$word")
      ;;
  esac
}
complete -o bashdefault -o default -F _taas_run taas-run
)";

std::string words(bool valued_only) {
  std::string all;
  for (const auto* flag : shown_flags()) {
    if (flag->takes_value() || !valued_only) all += " " + spelled(*flag);
  }
  return all + " ";
}

std::string pattern(const Flag& flag) {
  return flag.short_name == 0 ? fmt::format("--{}", flag.name) : fmt::format("--{} | -{}", flag.name, flag.short_name);
}

std::string value_case(const Flag& flag) {
  switch (offer(flag)) {
    case Offer::kChoices:
      return fmt::format(
          "    {})\n      compopt +o default +o bashdefault\n"
          "      mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")\n      return\n      ;;\n",
          pattern(flag), fmt::join(choices(flag), " "));
    case Offer::kFolders:
      return fmt::format(
          "    {})\n      compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen -d -- \"$word\")\n"
          "      return\n      ;;\n",
          pattern(flag));
    case Offer::kFiles:
      return fmt::format("    {}) return ;;\n", pattern(flag));
    case Offer::kNothing:
      break;
  }
  return "";
}

}  // namespace

std::string bash_completion() {
  std::string script(kBashHead);
  script += fmt::format("  local options='{}'\n  local valued='{}'", words(false), words(true));
  script += kFindOption;
  for (const auto* flag : shown_flags()) script += value_case(*flag);
  return script + std::string(kBashTail);
}

}  // namespace taas::cli
