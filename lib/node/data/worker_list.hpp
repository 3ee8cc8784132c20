#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/data/data_listeners.hpp"
#include "node/data/data_plan.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

struct WorkerListOptions {
  int workers = 0;             ///< of this machine
  int simulated_machines = 0;  ///< as in DataDeliveryOptions
  std::string instance;        ///< as in DataDeliveryOptions
  std::string listen_address;  ///< numeric
};

/// All data workers of the run as the coordinator lists them, and where those of this machine stand in that list.
class WorkerList {
 public:
  explicit WorkerList(WorkerListOptions options) : options_(std::move(options)) {}

  /// Opens the listeners of this machine's workers, with sockets in this folder. Simulated workers have their places at
  /// once: there are no others.
  Result<> open(boost::asio::io_context& io, const std::string& folder);
  /// The list only grows, but for those that have gone, whose places stay.
  void use(run::DataWorkers list);

  [[nodiscard]] const std::vector<run::DataWorker>& all() const { return list_.workers; }
  [[nodiscard]] bool is_here(const run::DataWorker& worker) const;
  [[nodiscard]] const std::vector<DataListeners>& listeners() const { return listeners_; }
  /// Of this machine's workers in the list of all, in the order of their listeners; empty: not known yet.
  [[nodiscard]] const std::vector<int>& places() const { return places_; }
  /// "data worker 3 (CPU machine 1)", or "data worker 3 (host b)" as the coordinator calls it.
  [[nodiscard]] std::string name_of(int index) const;
  /// For the plan file. `address_of` knows the machines of other workers by their DataWorker::node.
  [[nodiscard]] std::vector<DataPlanWorker> entries(
      const std::function<std::string(const std::string& node)>& address_of) const;

 private:
  [[nodiscard]] std::vector<int> own_places() const;
  [[nodiscard]] DataPlanWorker own_entry(const run::DataWorker& worker, int place) const;

  WorkerListOptions options_;
  std::vector<DataListeners> listeners_;
  run::DataWorkers list_;
  std::vector<int> places_;
};

}  // namespace taas::node
