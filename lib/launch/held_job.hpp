#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/timer.hpp"
#include "launch/host_command.hpp"
#include "plan/launch_mode/job_state.hpp"

namespace taas::launch {

/// A job of SLURM that was submitted with --hold, and whose nodes join this run. It is released when the run is ready
/// for them, SLURM is asked whether it still exists, and it does not outlive the run.
class HeldJob {
 public:
  struct Options {
    std::string id;
    int nodes = 1;                         ///< that it has
    std::vector<std::string> environment;  ///< of SLURM's commands
  };
  struct Callbacks {
    std::function<void(std::string)> notice;    ///< one line for the user
    std::function<void(std::string why)> over;  ///< nobody comes from it any more; told once
  };
  HeldJob(boost::asio::io_context& io, Family& family, Options options, Callbacks callbacks);

  /// From now on SLURM is asked for its state.
  void watch();
  /// Again and again, until SLURM has done it.
  void release();
  /// One of its nodes has joined.
  void arrived() { ++arrived_; }
  /// The run is over: a job whose nodes have not all joined would wait for it, and is cancelled. Turns the event loop
  /// until SLURM has answered; an error says that it did not.
  Result<> end();

 private:
  void ask();
  void hear(const std::vector<std::string>& lines);
  void try_release();
  void released(bool done, const std::vector<std::string>& lines);
  std::unique_ptr<HostCommand> start(std::vector<std::string> argv, HostCommand::OnEnd on_end);

  boost::asio::io_context& io_;
  Family& family_;
  Options options_;
  Callbacks callbacks_;
  plan::JobState state_;
  int arrived_ = 0;
  bool failure_told_ = false;
  Duration ask_pause_{};
  Duration release_pause_{};
  Timer ask_again_;
  Timer release_again_;
  std::unique_ptr<HostCommand> question_;
  std::unique_ptr<HostCommand> order_;  // release, or cancel
};

}  // namespace taas::launch
