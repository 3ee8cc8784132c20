#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_status.hpp"
#include "base/timer.hpp"
#include "launch/host_command.hpp"
#include "node/bootstrap.hpp"

namespace taas::launch {

/// One host and the command that puts an agent there.
struct HostEntry {
  int order = 0;     ///< place in the host list; -1: the command starts the agents of all hosts; run::kEveryDataNode
  std::string name;  ///< for people
  std::vector<std::string> argv;
  bool data = false;     ///< its agent has data workers and no ranks
  int data_workers = 0;  ///< Bootstrap::data_workers
  int order_base = 0;    ///< Bootstrap::order_base
};

/// Puts agents onto hosts, all at the same time, and says which hosts will not have one.
class HostStarter {
 public:
  struct Options {
    std::vector<HostEntry> hosts;
    std::vector<std::string> environment;                ///< of the commands
    node::Bootstrap bootstrap;                           ///< what HostEntry has is filled in for each
    bool spared = false;                                 ///< HostCommand::Options::spared
    std::optional<std::uint64_t> open_files_limit = {};  ///< HostCommand::Options::open_files_limit
    std::function<void(const std::string&)> on_notice = [](const std::string&) {};
  };
  HostStarter(boost::asio::io_context& io, Family& family, Options options,
              std::function<void(int order, const std::string& message)> on_failed);

  void start_all();
  /// Some command has not ended yet.
  [[nodiscard]] bool busy() const;
  /// Again, after the agent there was lost.
  void start(int order);
  /// The agent of this host is there: what becomes of the command does not matter any more.
  void arrived(int order);

 private:
  void start(const HostEntry& host);
  void ended(const HostEntry& host, ExitStatus status, const std::vector<std::string>& last_lines);
  void watch_step(const HostEntry& host);
  void tell_waiting(const std::string& text);

  boost::asio::io_context& io_;
  Family& family_;
  Options options_;
  std::function<void(int, const std::string&)> on_failed_;
  std::map<int, std::unique_ptr<HostCommand>> commands_;
  std::map<int, bool> arrived_;
  std::map<int, std::unique_ptr<Timer>> steps_;  // by order: until srun should have started the step
  bool waiting_told_ = false;
};

/// What may keep srun from starting a step, when it has not for a while: it says so itself only after minutes.
std::string explain_late_step(const HostEntry& host);

/// What a command says that waits for something the user may be able to change, with the way out; else empty.
std::string explain_waiting(const HostEntry& host, const std::string& line);

/// What the end of such a command means, in one line that names the host.
std::string explain_end(const HostEntry& host, ExitStatus status, const std::vector<std::string>& last_lines);

/// The command for one host of --hosts: `ssh`, a command line that is split at spaces, with its own configuration,
/// agents and keys; never a question.
std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host, const std::string& taas_run);
/// The command for all nodes of an allocation: one task of a new step on each.
std::vector<std::string> step_command(int nodes, const std::string& taas_run);
/// The same on the nodes of one component of a heterogeneous job.
std::vector<std::string> step_command(int nodes, const std::string& taas_run, int group);

}  // namespace taas::launch
