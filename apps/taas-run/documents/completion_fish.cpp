#include <fmt/format.h>
#include <fmt/ranges.h>

#include "documents/completion.hpp"
#include "flags/flags.hpp"

namespace taas::cli {
namespace {

constexpr std::string_view kFishHead = R"(# Completion of taas-run for fish. Made by: taas-run --print-completion fish
function __taas_run_before_program
    set -l value_follows no
    for word in (commandline -opc)[2..]
        if test $value_follows = yes
            set value_follows no
            continue
        end
        switch (string replace -a _ - -- $word)
            case --
                return 1
            case )";

constexpr std::string_view kFishTail = R"(
                set value_follows yes
            case '-*'
            case '*'
                return 1
        end
    end
    return 0
end
complete -c taas-run -n __taas_run_before_program -a train -d 'The training program that comes with taas-run'
)";

std::string in_fish_quotes(std::string_view text) {
  std::string quoted = "'";
  for (char letter : text) {
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "'";
}

std::string value(const Flag& flag) {
  switch (offer(flag)) {
    case Offer::kChoices:
      return fmt::format(" -x -a '{}'", fmt::join(choices(flag), " "));
    case Offer::kFiles:
      return " -r -F";
    case Offer::kFolders:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::kNothing:
      break;
  }
  return flag.takes_value() ? " -x" : "";
}

std::string line(const Flag& flag) {
  auto short_name = flag.short_name == 0 ? std::string() : fmt::format(" -s {}", flag.short_name);
  return fmt::format("complete -c taas-run -n __taas_run_before_program -l {}{}{} -d {}\n", flag.name, short_name,
                     value(flag), in_fish_quotes(flag.help));
}

}  // namespace

std::string fish_completion() {
  std::string valued, lines;
  for (const auto* flag : shown_flags()) {
    if (flag->takes_value()) valued += (valued.empty() ? "" : " ") + spelled(*flag);
    lines += line(*flag);
  }
  return std::string(kFishHead) + valued + std::string(kFishTail) + lines;
}

}  // namespace taas::cli
