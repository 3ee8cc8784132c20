#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas::cli {

struct Flag;

/// The completion script of a shell (bash, zsh, fish), made from the flags themselves. Nothing of taas-run is executed
/// while the user types.
Result<std::string> completion(std::string_view shell);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

/// What a shell may offer for a flag's value: the flag's choices(), files, folders, or nothing.
enum class Offer { kNothing, kChoices, kFiles, kFolders };
Offer offer(const Flag& flag);

/// Flags of the help, in its order.
std::vector<const Flag*> shown_flags();

/// All that a user may type for it, in dashes: "--tee -t".
std::string spelled(const Flag& flag);

/// In single quotes, as bash and zsh read them.
std::string in_quotes(std::string_view text);

}  // namespace taas::cli
