#include "node/data/data_delivery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <numeric>

#include "base/disk_thread.hpp"
#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "node/data/data_delivery_state.hpp"
#include "node/data/data_reports.hpp"
#include "plan/environment/data_environment.hpp"
#include "plan/sizes/data_machines.hpp"
#include "proc/machine/memory_watch.hpp"

namespace taas::node {
namespace {

constexpr auto kNewsEvery = std::chrono::seconds(1);

}  // namespace

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

std::string DataDelivery::plan_path() const { return state_->folder.path() + "/plan.json"; }
std::string DataDelivery::events_path() const { return state_->folder.path() + "/events"; }

std::vector<std::uint16_t> DataDelivery::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& listener : state_->listeners) ports.push_back(listener.port);
  return ports;
}

void DataDelivery::drain() { state_->events->drain(); }

Result<> DataDelivery::State::open() {
  auto socket = EventSocket::open(io, folder.path() + "/events", [this](std::string_view text) { report(text); });
  if (!socket) return socket.error();
  events.emplace(std::move(*socket));
  if (auto opened = open_listeners(); !opened) return opened;
  if (auto written = write_plan(); !written) return written;
  if (options.simulated_machines == 0) return {};
  places.resize(listeners.size());
  std::iota(places.begin(), places.end(), 0);
  return start_workers();
}

Result<> DataDelivery::State::open_listeners() {
  for (int index = 0; index < options.workers; ++index) {
    auto opened = open_data_listeners(io, options.listen_address, fmt::format("{}/{}", folder.path(), index));
    if (!opened) return opened.error();
    listeners.push_back(std::move(*opened));
  }
  return {};
}

/// Each of them knows its place, and there is a plan file that names it.
Result<> DataDelivery::State::start_workers() {
  const auto& data = options.settings.options.data;
  auto all = std::max<std::int64_t>(options.workers, static_cast<std::int64_t>(list.workers.size()));
  auto buffer = data.buffer_bytes * options.settings.world_size * options.workers / std::max<std::int64_t>(all, 1);
  if (!data.loader.empty()) preparation.emplace(options.workers, buffer);
  workers = std::make_unique<DataWorkers>(io, family, disk, plan::data_worker_command(options.program),
                                          [this](const DataWorkerEnd& end) { ended(end); });
  warn_of_memory();
  for (int index = 0; index < static_cast<int>(places.size()); ++index) {
    if (auto started = workers->start(describe(index)); !started) return started;
  }
  return {};
}

/// A program that is no Python program decides itself what its workers hold.
void DataDelivery::State::warn_of_memory() {
  if (!options.program.python) return;
  auto available = available_memory();
  if (!available) return;
  auto warning = plan::data_memory_warning(static_cast<int>(places.size()), options.machine.cores, *available);
  if (warning.empty()) return;
  boost::asio::post(io, [say = say, warning] { say(run::Remark{warning}); });  // nobody listens before the loop runs
}

DataWorkerStart DataDelivery::State::describe(int index) {
  DataWorkerStart start;
  start.worker = places[static_cast<std::size_t>(index)];
  start.name = name_of(index);
  start.listeners = &listeners[static_cast<std::size_t>(index)];
  start.log_folder = fmt::format("{}/data/worker-{:04}", options.run_folder, start.worker);
  disk.run([path = start.log_folder] {
    std::error_code ignored;  // without it the worker has no log files, and that is said of nothing else
    std::filesystem::create_directories(path, ignored);
  });
  auto variables = options.machine.environment;
  plan::DataWorkerPlace place{start.worker, "3,4", folder.path() + "/plan.json", folder.path() + "/events",
                              options.run_folder + "/log"};
  for (auto& [name, value] : plan::data_worker_environment(options.settings, options.machine, place)) {
    variables.insert_or_assign(name, value);
  }
  start.environment = assignments(variables);
  start.read_only = options.read_only;
  return start;
}

/// "data worker 3 (CPU machine 1)", or "data worker 3 (host b)" as the coordinator calls it.
std::string DataDelivery::State::name_of(int index) const {
  if (options.simulated_machines == 0) {
    return list.workers.at(static_cast<std::size_t>(places.at(static_cast<std::size_t>(index)))).name;
  }
  int machine = index * options.simulated_machines / std::max(1, options.workers);
  return fmt::format("data worker {} (CPU machine {})", index, machine);
}

void DataDelivery::State::report(std::string_view text) {
  auto told = parse_data_report(text, steady_now());
  if (!told) return;  // whatever it is, training does not depend on it
  const auto* prepared = std::get_if<run::DataPrepared>(&*told);
  if (prepared != nullptr && preparation) preparation->update(*prepared);
  if (prepared == nullptr || is_news(*prepared)) say(std::move(*told));
  check_prepared();
}

/// A worker may tell of each batch; the user reads of it once a second.
bool DataDelivery::State::is_news(const run::DataPrepared& told) {
  auto& last = told_of_prepared[told.worker];
  if (!told.done && told.at - last < kNewsEvery) return false;
  last = told.at;
  return true;
}

void DataDelivery::State::check_prepared() {
  if (!preparation || failed || !preparation->complete()) return;
  preparation.reset();
  outcome = run::LoaderPrepared{};
  say(*outcome);
}

/// One that ends by itself before it has prepared anything could not load the loader: neither will its successor.
void DataDelivery::State::ended(const DataWorkerEnd& end) {
  events->drain();
  say(run::DataWorkerEnded{end.worker, end.name, end.why, end.at});
  if (preparation && !failed && !end.killed && !preparation->began(end.worker)) {
    failed = true;
    auto why = end.last_line.empty() ? fmt::format("{} {}", end.name, end.why) : end.last_line;
    outcome = run::LoaderFailed{fmt::format("--loader {}: {}", options.settings.options.data.loader, why)};
    return say(*outcome);
  }
  if (preparation) preparation->forget(end.worker);
  if (!end.is_news || failed) return;
  auto last = end.last_line.empty() ? "" : ": " + end.last_line;
  say(run::Remark{fmt::format("{} {} and is started again{}", end.name, end.why, last)});
}

}  // namespace taas::node
