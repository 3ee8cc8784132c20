#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/options/options.hpp"
#include "plan/program/program.hpp"
#include "plan/program/source.hpp"

namespace taas::plan {

inline constexpr const char* kPreloadAuto = "auto";
inline constexpr const char* kPreloadNone = "none";

/// Whether ranks come out of a Python that has imported modules already, and which.
struct PreloadChoice {
  std::vector<std::string> modules;              ///< empty: every rank starts by itself
  std::size_t options = 0;                       ///< words of the command before the program
  std::string why;                               ///< for people, of an empty choice
  bool is_news = false;                          ///< the user may have expected another choice
  bool by_itself = false;                        ///< nobody has named these modules
  std::vector<std::string> set_by_program = {};  ///< no module may read them at import
};

/// What the names of variables begin with that libraries read once, when they are loaded; and of these, those that they
/// read later.
std::vector<std::string> read_at_load();
std::vector<std::string> read_later();

/// Of variables whose value differs between ranks, those that a rank has to be started with to obey them.
std::vector<std::string> read_at_start(const std::vector<std::string>& names);

/// The value of --preload: auto, none, or names of modules.
Result<> check_preload(std::string_view value);

/// Decides by --preload, and for `auto` by what the program and the files that it imports from beside it look like.
/// `ranks` are those of one machine; sources are read relative to the working directory.
PreloadChoice choose_preload(const Options& options, const std::vector<std::string>& command, int ranks,
                             const ReadSource& read);

}  // namespace taas::plan
