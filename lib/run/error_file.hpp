#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas::run {

/// What a program wrote into TORCHELASTIC_ERROR_FILE, as torch's @record does.
struct RecordedError {
  std::string message;                 ///< "ValueError: bad shape"
  std::vector<std::string> callstack;  ///< the printed traceback; may be empty
};

/// Nothing when the text is not such a file.
std::optional<RecordedError> parse_error_file(std::string_view text);

}  // namespace taas::run
