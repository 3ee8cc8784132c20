#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/timer.hpp"
#include "launch/host_command.hpp"
#include "plan/launch_mode/job_state.hpp"

namespace taas::launch {

/// A job of SLURM whose nodes join this run by themselves. SLURM is asked whether it still exists; one that was
/// submitted with --hold is released when the run is ready for it; and none outlives the run.
class BatchJob {
 public:
  struct Options {
    std::string id;
    std::string name;                      ///< of its nodes, for people: "the GPU nodes"
    int nodes = 1;                         ///< that it has
    std::vector<std::string> environment;  ///< of SLURM's commands
  };
  struct Callbacks {
    std::function<void(std::string)> notice;    ///< one line for the user
    std::function<void(std::string why)> over;  ///< nobody comes from it any more; told once
  };
  BatchJob(boost::asio::io_context& io, Family& family, Options options, Callbacks callbacks);

  /// From now on SLURM is asked for its state.
  void watch();
  /// Again and again, until SLURM has done it.
  void release();
  /// This one of its nodes has joined.
  void arrived(int node) { arrived_.insert(node); }
  /// The run is over, and nodes that have not joined would wait for it: cancels a job of which some have not, and one
  /// that is in the queue again. Turns the event loop until SLURM has answered; an error says that it did not.
  Result<> end();

 private:
  void ask();
  void hear(const std::vector<std::string>& lines);
  void try_release();
  void released(bool done, const std::vector<std::string>& lines);
  [[nodiscard]] std::vector<std::string> cancel_command() const;
  std::unique_ptr<HostCommand> start(std::vector<std::string> argv, HostCommand::OnEnd on_end);

  boost::asio::io_context& io_;
  Family& family_;
  Options options_;
  Callbacks callbacks_;
  plan::JobState state_;
  std::set<int> arrived_;
  bool failure_told_ = false;
  Duration ask_pause_{};
  Duration release_pause_{};
  Timer ask_again_;
  Timer release_again_;
  std::unique_ptr<HostCommand> question_;
  std::unique_ptr<HostCommand> release_;
};

}  // namespace taas::launch
