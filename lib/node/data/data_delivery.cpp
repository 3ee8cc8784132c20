#include "node/data/data_delivery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "base/disk_thread.hpp"
#include "base/environment/environment.hpp"
#include "node/data/data_plan.hpp"
#include "node/data/data_reports.hpp"
#include "node/data/data_workers.hpp"
#include "node/data/event_socket.hpp"
#include "node/data/loader_watch.hpp"
#include "node/data/worker_addresses.hpp"
#include "node/data/worker_list.hpp"
#include "node/process/private_folder.hpp"
#include "plan/environment/data_environment.hpp"
#include "plan/sizes/data_machines.hpp"
#include "proc/machine/memory_watch.hpp"

namespace taas::node {

struct DataDelivery::State {
  State(boost::asio::io_context& loop, Family& processes, DiskThread& thread, DataDeliveryOptions given, Say tell,
        PrivateFolder made)
      : io(loop),
        family(processes),
        disk(thread),
        options(std::move(given)),
        say(std::move(tell)),
        folder(std::move(made)),
        list({options.workers, options.simulated_machines, options.instance, options.listen_address}),
        addresses(io, {[this] { write_plan_or_remark(); }, [this](std::string text) { remark(std::move(text)); }}),
        loader(options.settings.options.data.loader) {}

  Result<> open();
  Result<> start_workers();
  void warn_of_memory();
  [[nodiscard]] DataWorkerStart describe(int index);
  void use(const run::DataWorkers& wanted);
  void report(std::string_view text);
  void ended(const DataWorkerEnd& end);
  Result<> write_plan();
  void write_plan_or_remark();
  void remark(std::string text) { say(run::Remark{std::move(text)}); }
  [[nodiscard]] HeldPath plan_file() const { return {folder.held(), "plan.json"}; }
  [[nodiscard]] std::string events_path() const { return folder.path() + "/events"; }

  boost::asio::io_context& io;
  Family& family;
  DiskThread& disk;
  DataDeliveryOptions options;
  Say say;
  PrivateFolder folder;
  std::optional<EventSocket> events;  // always, once prepared
  WorkerList list;
  WorkerAddresses addresses;
  LoaderWatch loader;
  std::unique_ptr<DataWorkers> workers;  // once their places are known
};

DataDelivery::DataDelivery(std::unique_ptr<State> state) : state_(std::move(state)) {}
DataDelivery::~DataDelivery() = default;

Result<std::unique_ptr<DataDelivery>> DataDelivery::prepare(boost::asio::io_context& io, Family& family,
                                                            DiskThread& disk, DataDeliveryOptions options, Say say) {
  auto folder = PrivateFolder::make(options.machine.environment);
  if (!folder) return folder.error();
  auto state = std::make_unique<State>(io, family, disk, std::move(options), std::move(say), std::move(*folder));
  if (auto opened = state->open(); !opened) return opened.error();
  return std::unique_ptr<DataDelivery>(new DataDelivery(std::move(state)));
}

std::string DataDelivery::plan_path() const { return state_->plan_file().path(); }
std::string DataDelivery::events_path() const { return state_->events_path(); }

std::vector<std::uint16_t> DataDelivery::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& listener : state_->list.listeners()) ports.push_back(listener.port);
  return ports;
}

void DataDelivery::set_world_size(int world_size) {
  if (std::exchange(state_->options.settings.world_size, world_size) != world_size) state_->write_plan_or_remark();
}

void DataDelivery::use(const run::DataWorkers& list) { state_->use(list); }

void DataDelivery::drain() { state_->events->drain(); }

Result<> DataDelivery::State::open() {
  auto socket = EventSocket::open(io, events_path(), [this](std::string_view text) { report(text); });
  if (!socket) return socket.error();
  events.emplace(std::move(*socket));
  if (auto opened = list.open(io, folder.path()); !opened) return opened;
  if (auto written = write_plan(); !written) return written;
  return list.places().empty() ? Result<>() : start_workers();
}

/// Each of them knows its place, and there is a plan file that names it.
Result<> DataDelivery::State::start_workers() {
  const auto& data = options.settings.options.data;
  auto all = std::max<std::int64_t>(options.workers, static_cast<std::int64_t>(list.all().size()));
  auto buffer = data.buffer_bytes * options.settings.world_size * options.workers / std::max<std::int64_t>(all, 1);
  loader.begin(options.workers, buffer);
  workers = std::make_unique<DataWorkers>(io, family, disk, plan::data_worker_command(options.program),
                                          [this](const DataWorkerEnd& end) { ended(end); });
  warn_of_memory();
  for (int index = 0; index < static_cast<int>(list.places().size()); ++index) {
    if (auto started = workers->start(describe(index)); !started) return started;
  }
  return {};
}

void DataDelivery::State::warn_of_memory() {
  auto available = available_memory();
  if (!available) return;
  auto warning = plan::data_memory_warning(static_cast<int>(list.places().size()), options.machine.cores, *available);
  if (warning.empty()) return;
  boost::asio::post(io, [say = say, warning] { say(run::Remark{warning}); });  // nobody listens before the loop runs
}

DataWorkerStart DataDelivery::State::describe(int index) {
  DataWorkerStart start;
  start.worker = list.places()[static_cast<std::size_t>(index)];
  start.name = list.name_of(index);
  start.listeners = &list.listeners()[static_cast<std::size_t>(index)];
  start.logs = {options.run_folder, fmt::format("data/worker-{:04}", start.worker)};
  disk.run([logs = start.logs] {  // without it the worker has no log files, and that is said of nothing else
    (void)logs.folder.make_folder(logs.name);
  });
  plan::DataWorkerPlace place{start.worker, "3,4", plan_file().path(), events_path(),
                              options.run_folder.path_of("log")};
  start.environment =
      assignments(options.machine.environment, plan::data_worker_environment(options.settings, options.machine, place));
  start.read_only = options.read_only;
  return start;
}

void DataDelivery::State::use(const run::DataWorkers& wanted) {
  list.use(wanted);
  for (const auto& worker : list.all()) {
    if (!list.is_here(worker)) addresses.find(worker);
  }
  write_plan_or_remark();
  if (loader.outcome()) say(*loader.outcome());
  if (list.places().empty() || workers) return;
  if (auto started = start_workers(); !started) remark(started.error().message);
}

void DataDelivery::State::report(std::string_view text) {
  auto told = parse_data_report(text, steady_now());
  if (!told) return;  // whatever it is, training does not depend on it
  const auto* prepared = std::get_if<run::DataPrepared>(&*told);
  if (prepared == nullptr || loader.update(*prepared)) say(std::move(*told));
  if (auto done = loader.check()) say(std::move(*done));
}

void DataDelivery::State::ended(const DataWorkerEnd& end) {
  events->drain();
  say(run::DataWorkerEnded{end.worker, end.name, end.why, end.at});
  if (auto failure = loader.ended(end)) return say(std::move(*failure));
  const bool tells = end.is_news || end.last_line.starts_with("taas: index ");  // the sample that it ended at
  if (!tells || loader.failed()) return;
  auto last = end.last_line.empty() ? "" : ": " + end.last_line;
  remark(fmt::format("{} {} and is started again{}", end.name, end.why, last));
}

Result<> DataDelivery::State::write_plan() {
  DataPlan plan;
  plan.run_id = options.settings.run_id;
  plan.key = options.key;
  plan.options = options.settings.options.data;
  plan.world_size = options.settings.world_size;
  plan.workers = list.entries([this](const std::string& node) { return addresses.of(node); });
  return write_data_plan(plan_file(), plan);
}

void DataDelivery::State::write_plan_or_remark() {
  if (auto written = write_plan(); !written) remark(written.error().message);
}

}  // namespace taas::node
