#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/options/launch_settings.hpp"
#include "plan/program/program.hpp"
#include "run/messages/messages.hpp"

namespace taas {
class DiskThread;
class Family;
class Ruleset;
}  // namespace taas

namespace taas::node {

/// What a node does for data delivery.
struct DataDeliveryOptions {
  plan::LaunchSettings settings;
  plan::Machine machine;
  plan::ResolvedProgram program;
  HeldFolder run_folder;
  std::string key;  ///< 64 hexadecimal digits
  int workers = 0;  ///< data worker processes on this machine
  int simulated_machines =
      0;                 ///< that these are spread over, and all there are; 0: the coordinator tells of the others
  std::string instance;  ///< Hello::instance: by it this node finds its workers in the coordinator's list
  std::string listen_address;          ///< numeric
  const Ruleset* read_only = nullptr;  ///< for data workers; null: they may write anywhere
};

/// A node's part of data delivery: the private folder with the plan file, its data workers and their listeners, and
/// what ranks and workers report. Says DataProgress, DataPrepared, DataWork, DataWorkerEnded, LoaderPrepared,
/// LoaderFailed and Remark.
class DataDelivery {
 public:
  using Say = std::function<void(run::AgentMessage)>;

  /// Opens the listeners, and starts simulated workers; others wait for their places in the coordinator's list.
  static Result<std::unique_ptr<DataDelivery>> prepare(boost::asio::io_context& io, Family& family, DiskThread& disk,
                                                       DataDeliveryOptions options, Say say);
  ~DataDelivery();

  [[nodiscard]] std::string plan_path() const;
  [[nodiscard]] std::string events_path() const;
  [[nodiscard]] std::vector<std::uint16_t> ports() const;
  void set_world_size(int world_size);
  void use(const run::DataWorkers& list);
  /// Passes on what processes that have ended reported last.
  void drain();

 private:
  struct State;
  explicit DataDelivery(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taas::node
