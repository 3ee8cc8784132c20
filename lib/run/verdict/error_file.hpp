#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/events/events.hpp"

namespace taas::run {

/// What a program wrote into TORCHELASTIC_ERROR_FILE, as torch's @record does.
struct RecordedError {
  std::string message;                 ///< "ValueError: bad shape"
  std::vector<std::string> callstack;  ///< the printed traceback; may be empty
};

/// Nothing when the text is not such a file.
std::optional<RecordedError> parse_error_file(std::string_view text);

/// What torchrun would write into an error file of its own about a run that failed: the culprit's, with the launcher's
/// exit code, or the launcher's words where the culprit wrote none. `now` is in seconds since 1970.
std::string print_error_file(const Verdict& verdict, std::int64_t now);

}  // namespace taas::run
