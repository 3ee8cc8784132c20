#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/environment/rank_environment.hpp"
#include "plan/program/program.hpp"
#include "run/messages/messages.hpp"
#include "storage/run_directory.hpp"

namespace taas {
class Family;
}

namespace taas::node {

struct NodeOptions {
  plan::LaunchSettings settings;
  plan::Machine machine;                     ///< of this node; its environment is what ranks inherit
  plan::ResolvedProgram program;             ///< what every rank runs
  std::vector<std::string> store_addresses;  ///< numeric; where the store listens. None: there is no store
  int most_ranks = 1;                        ///< that ever run here
  std::string listen_address;                ///< numeric; where data workers listen and ports of ranks are held
  bool all_output = false;                   ///< also tell lines that the console does not show
  std::string data_key;                      ///< what ranks and data workers prove to each other: 64 hexadecimal digits
  int data_workers = 0;                      ///< processes on this machine; without data delivery in the settings: none
  int simulated_cpu_machines = 0;            ///< as in DataDeliveryOptions
  int rank_ports = 0;                        ///< how many ports to hold for servers that ranks open
  std::string instance;                      ///< Hello::instance
  bool in_process = false;                   ///< no link between this node and the coordinator
  bool inherits_stdin = false;               ///< rank 0 reads the launcher's standard input
  std::string run_mark;  ///< of the run, as in storage::mark_folder(); empty: one folder for all nodes
  /// Sends a frame of a file (run/messages/file_frames.hpp) to the coordinator; without a link it is lost.
  std::function<void(std::string frame)> send_file = [](const std::string&) {};
  /// Called before ranks are spawned, in the event loop: the start was asked for some time ago, and may be taken back.
  std::function<void()> before_start = {};
  /// Called last, so that a run that is refused leaves no folder behind.
  std::function<Result<storage::RunDirectory>()> open_folder;
};

/// Carries out on this machine what the coordinator asks of a node: owns the ranks' processes, the store, the log
/// files, the publishing of what ranks write and its delivery, and the node's part of data delivery. Says what happens,
/// with instants of this machine's clock. One instance a process.
class Node {
 public:
  using Say = std::function<void(run::AgentMessage)>;

  /// Binds the store and opens the run's folder: what may refuse does so before any rank is started.
  static Result<std::unique_ptr<Node>> prepare(boost::asio::io_context& io, NodeOptions options, Say say);
  ~Node();

  [[nodiscard]] std::uint16_t store_port() const;
  /// Of this process, for others that start some.
  [[nodiscard]] Family& family();
  [[nodiscard]] std::vector<std::uint16_t> data_ports() const;
  [[nodiscard]] std::vector<std::uint16_t> rank_ports() const;
  /// The mark of the run's folder on this machine; empty: it has none.
  [[nodiscard]] const std::string& folder_mark() const;
  /// As in run::Ready.
  [[nodiscard]] std::string folder_view() const;
  /// The agent has a new link to the coordinator, and none of its ranks has outlived the former one.
  void link_is_new();
  /// The interface by which the other nodes are reached, for programs that have to be told (Gloo).
  void use_interface(const std::string& name);
  /// StartRanks, SignalRanks, KillGeneration, SweepGeneration, OutputShown, RequestStop, Settle, Abandon, DataWorkers,
  /// FileProgress, FileStored, LookAtWriters, WritersAnswer; every other message is not a node's and ignored.
  void perform(const run::CoordinatorMessage& message);
  /// Where the user finds what ranks wrote.
  [[nodiscard]] std::string output_directory() const;

 private:
  struct State;
  explicit Node(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taas::node
