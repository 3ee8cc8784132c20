#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"
#include "node/process/last_words.hpp"
#include "proc/spawn/spawn.hpp"
#include "run/events/events.hpp"
#include "run/events/training_facts.hpp"
#include "ui/text/events.hpp"

namespace taas {
class DiskThread;
class Family;
class Ruleset;
}  // namespace taas

namespace taas::node {

/// What one rank of one generation is started with; or a data worker, which is no rank: -1.
struct RankStart {
  Rank rank;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< complete, "NAME=value"
  const Ruleset* read_only = nullptr;    ///< null: the rank may write anywhere
  std::vector<int> processors = {};      ///< as in SpawnRequest
  std::optional<std::uint64_t> open_files_limit;
  HeldPath stdout_file;
  HeldPath stderr_file;
  HeldPath error_file;     ///< TORCHELASTIC_ERROR_FILE
  HeldPath flight_record;  ///< where torch writes the rank's last collectives when one hangs; none: not known
  bool inherits_stdin = false;
  bool on_terminal = false;               ///< its stdout is a terminal, where there is one to be had
  std::vector<const Fd*> inherited = {};  ///< become descriptors 3, 4, and so on
};

/// What a rank tells the run. Called in the event loop; `on_exit` once, after its last line, when its log files have
/// all and the evidence has been read.
struct RankCallbacks {
  std::function<void(const ui::OutputLine&)> on_line;
  std::function<void(run::ExitStatus, run::Evidence, Instant)> on_exit;
  std::function<void(const Error&)> on_log_error;
  std::function<void(run::TrainingFacts)> on_facts = {};  ///< before `on_exit`, if it has noticed any
  /// It has raised and does not end, or seems so: each time when that changes. Not watched for where nobody asks.
  std::function<void(run::Lingering, std::string waits_for, run::Evidence)> on_lingering = {};
};

/// What a process with this environment ignores until it handles it. SLURM sends the signal of --signal to every
/// process of a step, and those that know nothing of it would end.
std::vector<int> signals_to_ignore(const std::vector<std::string>& environment);

/// A rank whose pipes are there and whose process is not.
struct PreparedRank {
  RankStart start;
  Fd input;  ///< /dev/null, or none: the launcher's own
  Pipe out;
  Pipe err;

  static Result<PreparedRank> make(RankStart start);
  /// Points into this.
  [[nodiscard]] SpawnRequest request() const;
};

/// Owns one training process: its pipes, its log files and the evidence for the verdict. Does not kill it when
/// destroyed: the process family is the run's business.
class RankProcess {
 public:
  /// Takes over a process that was started by the prepared rank's request. The family and the disk thread outlive the
  /// rank.
  static std::unique_ptr<RankProcess> adopt(boost::asio::io_context& io, Family& family, DiskThread& disk,
                                            PreparedRank prepared, Child child, RankCallbacks callbacks);
  /// Starts one and returns once the program runs; an error's errno is exec's.
  static Result<std::unique_ptr<RankProcess>> start(boost::asio::io_context& io, Family& family, DiskThread& disk,
                                                    RankStart start, RankCallbacks callbacks);
  ~RankProcess();

  [[nodiscard]] int pid() const;
  [[nodiscard]] bool preloaded() const;
  [[nodiscard]] bool running() const;
  /// To all of the process group, unlike Family::tell(); nothing when it has ended.
  void signal(int number);
  /// Back-pressure: while paused nothing is read, so the rank blocks in its own writes when its pipe is full.
  void pause();
  void resume();
  /// Reads and passes on whatever is left, an unended line included; called when the generation is gone.
  void flush();

 private:
  struct State;
  explicit RankProcess(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
