#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_plan.hpp"
#include "run/messages/code_frames.hpp"

namespace taas::launch {

/// The files of the program as machines are given them that do not have them: what git knows of a folder, changes and
/// new files too, or, where that is no repository, all but what begins with a dot, compiled Python, and virtual
/// environments. All are held in memory, so that machines that come late get what the others have.
class CodeSource {
 public:
  struct Options {
    std::string folder;      ///< absolute
    std::string program;     ///< that is executed, relative to the folder, whatever git says; empty: it is elsewhere
    std::string run_folder;  ///< as in run::CodeOffer
    bool replaces = false;   ///< likewise
  };
  static constexpr std::uint64_t kMostBytes = 64u << 20;
  static constexpr std::size_t kMostFiles = 20'000;

  /// Nothing: there is no repository, and the folder was not asked for. An error: it cannot be read, or has too much.
  static Result<std::shared_ptr<CodeSource>> open(Options options);

  /// Copies are made below this folder.
  void set_run_folder(std::string folder) { options_.run_folder = std::move(folder); }
  /// What the folder has at one time.
  struct State;
  /// Reads what has changed since; null: nothing has. Blocks for as long as a disk takes, and may run in a thread of
  /// its own meanwhile, as long as nothing is replaced.
  [[nodiscard]] Result<std::shared_ptr<const State>> read_again() const;
  /// From now on it is this.
  void replace(std::shared_ptr<const State> state) { state_ = std::move(state); }
  /// Which state of the folder it is.
  [[nodiscard]] std::uint32_t version() const;
  /// The frame that tells of it.
  [[nodiscard]] std::string offer() const;
  /// The frames that answer what an agent has asked for. An error: it does not keep to the rules.
  [[nodiscard]] Result<std::vector<std::string>> answer(std::string_view frame) const;

 private:
  struct Held;

  explicit CodeSource(Options options) : options_(std::move(options)) {}
  [[nodiscard]] std::optional<std::vector<std::string>> names_by_git() const;
  [[nodiscard]] Result<std::shared_ptr<const State>> read(std::vector<std::string> listed) const;
  [[nodiscard]] std::optional<Held> hold(const std::string& name, const struct stat& status) const;

  Options options_;
  bool is_repository_ = false;
  std::shared_ptr<const State> state_;  // always, once open
};

/// Which folder of this machine others are given; none: nobody gets anything. `over_ssh`: the launcher starts them.
Result<std::optional<CodeSource::Options>> code_wanted(const plan::Options& options,
                                                       const std::string& working_directory, bool over_ssh);

}  // namespace taas::launch
