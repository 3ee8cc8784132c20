#include "plan/program/python_command.hpp"

#include <algorithm>
#include <string_view>

namespace taas::plan {
namespace {

constexpr std::string_view kSwitches = "bBdEIOPqRsSuv";
constexpr std::string_view kWithValue = "WX";

/// python, python3, python3.11, and with a path in front.
bool is_interpreter(std::string_view path) {
  constexpr std::string_view kName = "python";
  auto name = path.substr(path.find_last_of('/') + 1);
  if (!name.starts_with(kName)) return false;
  return name.find_first_not_of("0123456789.", kName.size()) == name.npos;
}

enum class Word { kOptions, kValueFollows, kModule, kText, kUnknown };

/// Letters may stand in one word: -um, -Werror.
Word read_word(std::string_view word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    bool last = i + 1 == word.size();
    if (kWithValue.find(word[i]) != kWithValue.npos) return last ? Word::kValueFollows : Word::kOptions;
    if (word[i] == 'm' && last) return Word::kModule;
    if (word[i] == 'c' && last) return Word::kText;
    if (kSwitches.find(word[i]) == kSwitches.npos) return Word::kUnknown;
  }
  return Word::kOptions;
}

}  // namespace

bool is_stream(std::string_view path) {
  return path.starts_with("/dev/stdin") || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

std::optional<PythonCommand> parse_python_command(const std::vector<std::string>& command) {
  if (command.empty() || !is_interpreter(command.front())) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const auto& word = command[i];
    if (is_stream(word)) return std::nullopt;
    if (!word.starts_with('-')) return PythonCommand{PythonCommand::Kind::kScript, i, word};
    if (word == "-" || word.starts_with("--")) return std::nullopt;
    auto read = read_word(word);
    if (read == Word::kUnknown) return std::nullopt;
    if (read == Word::kValueFollows) ++i;
    bool names_program = read == Word::kModule || read == Word::kText;
    if (!names_program) continue;
    if (i + 1 == command.size()) return std::nullopt;
    if (read == Word::kText) return PythonCommand{PythonCommand::Kind::kText, i, command[i + 1]};
    auto argument = i + 2 < command.size() ? command[i + 2] : "";
    return PythonCommand{PythonCommand::Kind::kModule, i, command[i + 1], argument};
  }
  return std::nullopt;
}

}  // namespace taas::plan
