#include "documents/man_page.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "flags/flags.hpp"
#include "flags/help_words.hpp"

namespace taas::cli {
namespace {

// Sections that the help has no room for.
constexpr std::string_view kAfterOptions = R"(.SH ENVIRONMENT
.TP
.B PET_<OPTION>
Default of an option of torchrun, as PET_NPROC_PER_NODE.
.TP
.B PYTHON_EXEC
The interpreter of Python programs. Without it that of the active virtual environment, of the environment that taas\-run
lies in, or the first python3 in PATH.
.TP
.B TAAS_TOKEN
The secret of nodes that join, unless \-\-token\-file names it; "taas\-run token" makes one.
.PP
Each rank gets the variables that torchrun sets, and TAAS_OUTPUT_DIR, the folder for what it writes.
.SH FILES
.TP
.I taas\-runs/latest/
The newest run: each rank's output, the journal of events, and the files that rank 0 wrote.
.SH EXIT STATUS
That of the rank that failed first; 128 and the signal's number when a signal ended it; 126 or 127 when the program cannot
be executed; 2 for a wrong command line; 0 otherwise.
)";

/// Text for roff: backslashes, and lines that would begin a request; "-" as it is typed.
std::string escape_for_roff(std::string_view text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped = "\\&";
  for (char letter : text) {
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string entry(const Flag& flag) {
  auto names = flag.short_name == 0 ? std::string() : fmt::format("\\fB\\-{}\\fR, ", flag.short_name);
  names += fmt::format("\\fB\\-\\-{}\\fR", escape_for_roff(flag.name));
  if (flag.takes_value()) names += fmt::format(" \\fI{}\\fR", escape_for_roff(flag.value));
  return fmt::format(".TP\n{}\n{}.\n", names, escape_for_roff(flag.help));
}

std::string options() {
  std::string text;
  for (const auto& group : flag_groups()) {
    text += fmt::format(".SS {}\n", escape_for_roff(group.heading));
    for (const auto& flag : group.flags) {
      if (flag.origin != Flag::Origin::kInternal) text += entry(flag);
    }
  }
  return text;
}

std::string commands() {
  std::string text = ".SH COMMANDS\n";
  for (const auto& command : kCommands) {
    text += fmt::format(".TP\n.B taas\\-run {}\n{}.\n", command.name, escape_for_roff(command.help));
  }
  return text;
}

std::string examples() {
  std::string text = ".SH EXAMPLES\n.EX\n";
  for (auto example : kExamples) text += escape_for_roff(example) + "\n";
  return text + ".EE\n";
}

}  // namespace

std::string man_page() {
  return fmt::format(
             ".TH TAAS\\-RUN 1 \"\" \"taas\\-run {}\" \"User Commands\"\n.SH NAME\ntaas\\-run \\- {}\n"
             ".SH SYNOPSIS\n.B taas\\-run\n.RI [ OPTIONS ]\n.I PROGRAM\n.RI [ ARGUMENTS... ]\n.SH DESCRIPTION\n"
             "Starts one process for each GPU, on one machine or many: {}.\n.PP\n{}\n.SH OPTIONS\n",
             kLauncherVersion, escape_for_roff(kSummary), escape_for_roff(kPrograms), escape_for_roff(kSpelling)) +
         options() + commands() + std::string(kAfterOptions) + examples();
}

}  // namespace taas::cli
