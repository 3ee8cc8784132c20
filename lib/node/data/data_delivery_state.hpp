#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/timer.hpp"
#include "net/link.hpp"
#include "node/data/data_delivery.hpp"
#include "node/data/data_listeners.hpp"
#include "node/data/data_plan.hpp"
#include "node/data/data_workers.hpp"
#include "node/data/event_socket.hpp"
#include "node/process/private_folder.hpp"
#include "run/agent/loader_preparation.hpp"

namespace taas::node {

/// The DataDelivery's inside. The workers of this machine are in data_delivery.cpp; those of other machines, and the
/// file that names all of them, are in data_plan_file.cpp.
struct DataDelivery::State {
  State(boost::asio::io_context& loop, Family& processes, DiskThread& thread, DataDeliveryOptions given, Say tell,
        PrivateFolder made)
      : io(loop),
        family(processes),
        disk(thread),
        options(std::move(given)),
        say(std::move(tell)),
        folder(std::move(made)) {}

  Result<> open();
  Result<> open_listeners();
  Result<> start_workers();
  void warn_of_memory();
  [[nodiscard]] DataWorkerStart describe(int index);
  [[nodiscard]] std::string name_of(int index) const;
  void report(std::string_view text);
  [[nodiscard]] bool is_news(const run::DataPrepared& told);
  void check_prepared();
  void ended(const DataWorkerEnd& end);

  void find_address(const run::DataWorker& worker);
  void probe(const run::DataWorker& worker);
  void probed(const run::DataWorker& worker, std::vector<std::string> reached);
  [[nodiscard]] std::vector<int> own_places() const;
  [[nodiscard]] DataPlanWorker entry_of(const run::DataWorker& worker, int place) const;
  [[nodiscard]] std::vector<DataPlanWorker> entries() const;
  Result<> write_plan();
  void write_plan_or_remark();

  boost::asio::io_context& io;
  Family& family;
  DiskThread& disk;
  DataDeliveryOptions options;
  Say say;
  PrivateFolder folder;
  std::optional<EventSocket> events;
  std::vector<DataListeners> listeners;  // one for each worker of this machine
  std::unique_ptr<DataWorkers> workers;
  std::vector<int> places;                            // by index: in the list of all workers; empty: not known yet
  std::optional<run::LoaderPreparation> preparation;  // until it is complete
  bool failed = false;
  std::map<int, Instant> told_of_prepared;   // by worker
  std::optional<run::AgentMessage> outcome;  // of the preparation; said again to a coordinator that was lost

  struct Found {
    std::string address;  // empty: none has answered yet
    std::unique_ptr<net::Connecting> probing;
    std::unique_ptr<Timer> again;
    bool told = false;  // that none can be reached
  };
  run::DataWorkers list;               // as the coordinator told it
  std::map<std::string, Found> nodes;  // by Hello::instance
};

}  // namespace taas::node
