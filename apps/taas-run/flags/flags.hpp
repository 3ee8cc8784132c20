#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

using Values = std::vector<std::string>;

/// One option of the command line: the same entry serves the parser, PET_*, the config file and the help. Errors of
/// `apply` do not name the flag: whoever calls it knows where the value came from.
struct Flag {
  std::string_view name;  ///< with dashes, without the two in front; underscores are accepted as well
  char short_name;        ///< 0: none
  /// What the help calls the value, words that it can be in lower case: "N", "auto|none|MODULES". Empty: a switch.
  std::string_view value;
  std::string_view help;
  Result<> (*apply)(plan::Options& options, const Values& values);  ///< values.back() is the one that counts
  /// kInternal: between processes of taas-run; in no help, and never guessed at
  enum class Origin { kTorchrun, kTorchrunWithoutPet, kOwn, kInternal } origin = Origin::kTorchrun;
  enum class Kind { kSingle, kCommaList, kRepeatable } kind = Kind::kSingle;

  [[nodiscard]] bool takes_value() const { return !value.empty(); }
  /// Blanks and line ends around a value come from YAML, from `cat` and from files with Windows line endings; only in
  /// paths and in text can they be meant.
  [[nodiscard]] bool keeps_blanks() const;
};

/// Flags under one heading of the help.
struct FlagGroup {
  std::string_view heading;
  std::span<const Flag> flags;
};

FlagGroup size_flags();
FlagGroup nodes_flags();
FlagGroup slurm_flags();
FlagGroup data_flags();
FlagGroup program_flags();
FlagGroup framework_flags();
FlagGroup rendezvous_flags();
FlagGroup supervision_flags();
FlagGroup output_flags();
FlagGroup general_flags();

/// The words that a flag's value can be, as its entry names them; empty when it is of another kind.
std::vector<std::string_view> choices(const Flag& flag);

/// The variable that a torchrun flag of this name has its default from: PET_NPROC_PER_NODE.
std::string pet_variable(std::string_view flag);

/// All groups, in the order of the help.
std::span<const FlagGroup> flag_groups();

/// By name, in either spelling and without the dashes in front; null when there is none.
const Flag* find_flag(std::string_view name);
const Flag* find_flag(char short_name);

}  // namespace taas::cli
