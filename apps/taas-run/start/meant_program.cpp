#include "start/meant_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "base/shell.hpp"
#include "base/text.hpp"
#include "flags/help_words.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 4096;  // of a folder that are looked through
constexpr std::string_view kPython = ".py";

/// The names of the files in a folder; those of Python alone, or all.
std::vector<std::string> files_in(const fs::path& folder, bool python_alone) {
  std::vector<std::string> names;
  std::error_code failed;
  std::size_t seen = 0;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end && seen < kMostFiles;
       entry.increment(failed), ++seen) {
    std::error_code unknown;
    auto name = entry->path().filename().string();
    if ((!python_alone || name.ends_with(kPython)) && entry->is_regular_file(unknown)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);  // of two that are as near, always the same
  return names;
}

/// As it would be typed; empty: nothing is near.
std::string nearest_program(const plan::ProgramOptions& program) {
  const fs::path path(program.program);
  const auto name = path.filename().string();
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool is_python = program.script || name.ends_with(kPython);
  const auto files = files_in(folder, is_python);
  if (std::ranges::find(files, name + std::string(kPython)) != files.end())
    return program.program + std::string(kPython);
  std::vector<std::string_view> names;
  if (!is_python && !path.has_parent_path() && !program.no_python) {
    names.assign(std::begin(kCommandNames), std::end(kCommandNames));
    names.insert(names.end(), std::begin(plan::kShippedPrograms), std::end(plan::kShippedPrograms));
  }
  names.insert(names.end(), files.begin(), files.end());
  const auto nearest = nearest_word(name, names);
  return nearest.empty() ? std::string() : (path.parent_path() / nearest).string();
}

}  // namespace

std::string meant_by(const std::string& word) {
  static const std::map<std::string, std::string> kMeant{
      {"ls", "`taas-run runs` lists runs"},
      {"list", "`taas-run runs` lists runs"},
      {"ps", "`taas-run runs --running` lists runs"},
      {"status", "`taas-run top` and `taas-run runs` say how runs are"},
      {"log", "`taas-run logs` prints what ranks printed"},
      {"tail", "`taas-run logs -f` prints what ranks print"},
      {"kill", "`taas-run stop` stops a run"},
      {"rm", "`taas-run clean` removes old runs"}};
  const auto found = kMeant.find(word);
  return found == kMeant.end() ? std::string() : found->second;
}

Error name_what_was_meant(Error error, const plan::ProgramOptions& program) {
  std::error_code failed;
  const bool missing = error.code == ErrorCode::kCannotExecute && error.system_errno == ENOENT;
  if (!missing || program.module || fs::exists(program.program, failed)) return error;  // it may be the interpreter
  const auto meant = nearest_program(program);
  if (meant.empty()) return error;
  return usage_error_with_fix(error.message, fmt::format("did you mean {}?", type_for_shell(meant)));
}

}  // namespace taas::cli
