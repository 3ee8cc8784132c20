#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"
#include "base/ids.hpp"
#include "base/ranks/rank_placement.hpp"

namespace taas::storage {

enum class LogStream { kStdout, kStderr };

struct RunDirectoryOptions {
  std::string output = {};  ///< --output; made when it is missing
  std::string run_id = {};  ///< names the run's folder; "-2" and so on is appended when that exists already
  std::optional<std::string> log_dir = {};  ///< --log-dir: torchrun's layout there, for the ranks' log files
  bool is_latest = true;                    ///< the link "latest" leads to it from now on
  /// Names the place to use where nobody may write to `output`; empty: that is an error.
  std::function<std::string()> otherwise = {};
};

/// The folder of one run, and where everything in it lies. It is held open from its making on, as this run's folder
/// below --log-dir is. All paths are absolute. Folders of a generation are made when the first place in them is asked
/// for.
class RunDirectory {
 public:
  /// The run's folder, held open from its creation on: ranks may put something else under path(), but not in here.
  [[nodiscard]] const HeldFolder& held() const { return folder_; }
  [[nodiscard]] const Fd& folder() const { return folder_.descriptor(); }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  /// This run's own folder below --log-dir; empty: none was asked for.
  [[nodiscard]] const std::string& log_dir() const { return logs_.path(); }
  /// One line for the user where it had to be made in another place than was wanted; else empty.
  [[nodiscard]] const std::string& notice() const { return notice_; }
  [[nodiscard]] HeldPath journal() const { return {folder_, "journal.jsonl"}; }
  /// Where the launcher's own processes write their logs (base/log/log.hpp).
  [[nodiscard]] std::string own_logs() const { return path() + "/log"; }
  /// TAAS_OUTPUT_DIR: where ranks write.
  [[nodiscard]] std::string staging() const { return path() + "/.staging"; }
  /// Where what they wrote is published.
  [[nodiscard]] std::string files() const { return path() + "/output"; }

  /// Of ranks other than 0 with --rank-output private: what each has written is in a folder of its own below.
  [[nodiscard]] std::string private_files() const { return path() + "/private"; }
  [[nodiscard]] Result<> make_private_files() const;
  /// rank-0003/output in there: TAAS_OUTPUT_DIR of this rank.
  [[nodiscard]] std::string private_output(Rank rank) const;
  [[nodiscard]] Result<> make_private_output(Rank rank) const;

  /// generation-0/rank-0003.out, or with log_dir attempt_0/3/stdout.log, in node_1/ and so on for nodes other than the
  /// first: torchrun's agents have a folder each, and the simulated ones share this machine.
  Result<HeldPath> rank_log(Generation generation, const RankPlace& rank, LogStream stream) const;
  /// TORCHELASTIC_ERROR_FILE, beside the log files.
  Result<HeldPath> error_file(Generation generation, const RankPlace& rank) const;
  /// Removes the launcher's files of that rank, and the folder if it is empty then. What lies below log_dir() stays.
  void remove_rank_files(Generation generation, const RankPlace& rank) const;
  /// What the names of torch's flight records begin with; the rank follows. In the run's folder, whatever log_dir() is.
  Result<HeldPath> flight_records(Generation generation) const;

 private:
  friend Result<RunDirectory> create_run_directory(RunDirectoryOptions options);
  friend Result<RunDirectory> open_run_directory(const std::string& path, const std::string& log_dir);
  RunDirectory(HeldFolder folder, HeldFolder logs) : folder_(std::move(folder)), logs_(std::move(logs)) {}
  [[nodiscard]] Result<> make_folders() const;
  /// Below log_dir() where there is one, and torchrun's name for the place; else below the run's folder.
  [[nodiscard]] Result<HeldPath> place_of_rank(Generation generation, const RankPlace& rank, const char* below_run,
                                               const char* below_log_dir) const;

  HeldFolder folder_;
  HeldFolder logs_;  // without --log-dir none
  std::string notice_;
};

/// Makes the run's folder with staging() and files() in it, and points <output>/latest to it. Fails, before anything is
/// trained, when the place cannot be written or is full.
Result<RunDirectory> create_run_directory(RunDirectoryOptions options);

/// The same run's folder on another node: the paths that create_run_directory() chose. On shared storage they are there
/// already; elsewhere they are made, and have to be writable and have room as well.
Result<RunDirectory> open_run_directory(const std::string& path, const std::string& log_dir);

}  // namespace taas::storage
