#include <fmt/format.h>

#include <utility>

#include "run/coordinator/coordinator_state.hpp"

namespace taas::run {
namespace {

constexpr auto kTellEvery = std::chrono::seconds(10);
constexpr double kMegabyte = 1e6;
constexpr double kGigabyte = 1e9;

/// "1234 batches, 5.68 GB".
std::string sum_of(const std::map<int, DataPrepared>& prepared_by) {
  std::int64_t batches = 0;
  std::int64_t bytes = 0;
  for (const auto& [worker, told] : prepared_by) {
    batches += told.batches;
    bytes += told.bytes;
  }
  auto size = static_cast<double>(bytes);
  if (size < kGigabyte) return fmt::format("{} batches, {:.1f} MB", batches, size / kMegabyte);
  return fmt::format("{} batches, {:.2f} GB", batches, size / kGigabyte);
}

}  // namespace

/// A CPU machine is no node of the world: nothing about ranks waits for it or ends with it.
void Coordinator::State::welcome_data(AgentId agent, const Hello& hello) {
  data.arrive(agent, hello);
  if (!check_agents_at) check_agents_at = now + policy.lost_after;
  tell(agent, Welcome{policy.launch});
}

void Coordinator::State::data_ready(AgentId agent, const Ready& message) {
  data.ready(agent, message.data_ports);
  data_changed();
}

void Coordinator::State::data_refused(AgentId agent, const std::string& why) {
  notify(fmt::format("{} makes no batches: {}", agents.at(agent).hello.hostname, why));
  data.refuse(agent);
  dismiss(agent, why, kUsageError);
  data_changed();
}

void Coordinator::State::data_lost(AgentId agent, const Hello& hello, const std::string& reason) {
  data.lose(agent, now);
  prepared.erase(agent);
  if (!settling) notify(fmt::format("CPU machine {} was lost: {}; the others go on", hello.hostname, reason));
  data_changed();
}

/// Workers that prepare a loader share it out among all of them, so they start when it is known how many there are.
bool Coordinator::State::data_list_is_open() const { return policy.loader.empty() || data.settled(); }

void Coordinator::State::data_changed() {
  if (data_list_is_open()) {
    for (const auto& [agent, known] : agents) emit(Tell{agent, data.list()});
  }
  if (!policy.loader.empty() && data.none_left()) {
    return fail_preparation(fmt::format("--loader {}: no CPU machine is there to prepare it", policy.loader));
  }
  try_gather();
}

void Coordinator::State::hear(AgentId /*agent*/, const DataPrepared& message) {
  prepared_by[message.worker] = message;
  if (!gathering || !preparation_told || now - *preparation_told < kTellEvery) return;
  preparation_told = now;
  notify(fmt::format("preparing {}: {} so far", policy.loader, sum_of(prepared_by)));
}

void Coordinator::State::hear(AgentId agent, const LoaderPrepared& /*message*/) {
  prepared.insert(agent);
  if (data.has(agent)) data.prepared(agent);
  try_gather();
}

void Coordinator::State::hear(AgentId agent, const LoaderFailed& message) {
  auto where = data.has(agent) ? agents.at(agent).hello.hostname + ": " : std::string();
  fail_preparation(where + message.message);
}

/// Asked whenever all else is ready for ranks to start. The wait for machines has a deadline; their work has none.
bool Coordinator::State::loader_is_prepared() {
  if (policy.loader.empty() || generation.value > 0) return true;
  bool simulated = policy.data.nodes == 0;
  bool complete = simulated ? !prepared.empty() : data.all_prepared();
  if (complete) {
    if (preparation_told) notify(fmt::format("prepared {}: {}", policy.loader, sum_of(prepared_by)));
    return true;
  }
  auto give_up = gathering_since + policy.gather_timeout;
  bool waits_for_machines = !simulated && !data.settled();
  if (waits_for_machines && give_up <= now) {
    fail_preparation(fmt::format("--loader {}: CPU machines are missing: {}", policy.loader, data.missing()));
    return false;
  }
  if (waits_for_machines) gather_at = give_up;
  if (!std::exchange(preparation_told, preparation_told.value_or(now))) {
    notify(fmt::format("preparing {} before ranks start", policy.loader));
  }
  return false;
}

void Coordinator::State::fail_preparation(std::string why) {
  if (!std::exchange(gathering, false)) return;
  supervise(GatherFailed{std::move(why), "", kUsageError, now});
}

}  // namespace taas::run
