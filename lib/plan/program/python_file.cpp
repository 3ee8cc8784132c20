#include "plan/program/python_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace taas::plan {
namespace {

constexpr std::string_view kExecutableFormat =
    "\x7f"
    "ELF";
constexpr std::string_view kArchive = "PK";                            // as zipapp and torch.save write them
constexpr std::string_view kPythons[] = {"python", "pypy", "uv run"};  // in a first line

/// What stands behind "#!" in the first line; empty when there is no such line.
std::string_view interpreter_of(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return {};
  return trim(beginning.substr(2, beginning.find('\n') - 2));
}

bool is_python(std::string_view interpreter) {
  return std::any_of(std::begin(kPythons), std::end(kPythons),
                     [&](auto name) { return interpreter.find(name) != interpreter.npos; });
}

}  // namespace

std::string why_not_python(const std::string& path, std::string_view beginning) {
  auto interpreter = interpreter_of(beginning);
  if (!interpreter.empty()) {
    if (is_python(interpreter)) return {};
    return fmt::format(
        "not executable, and its first line asks for {}: chmod +x {} lets that run it, --run-path Python", interpreter,
        path);
  }
  if (beginning.starts_with(kExecutableFormat)) return fmt::format("not executable; chmod +x {} makes it so", path);
  bool for_python = beginning.starts_with(kArchive) || path.ends_with(".pyc");
  if (for_python || beginning.find('\0') == beginning.npos) return {};
  return "neither executable nor Python: it holds binary data";
}

std::string why_not_a_program(const std::string& path) {
  if (!path.ends_with(".ipynb")) return {};
  return fmt::format(
      "a notebook, not a program: jupyter nbconvert --to script {} makes one of it; "
      "%%taas runs cells on many ranks",
      path);
}

}  // namespace taas::plan
