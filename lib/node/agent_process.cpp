#include "node/agent_process.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/log/log_file.hpp"
#include "base/text.hpp"
#include "base/timer.hpp"
#include "base/version.hpp"
#include "net/addresses.hpp"
#include "node/agent_policy.hpp"
#include "node/job_signals.hpp"
#include "node/preparation.hpp"
#include "node/uplink.hpp"

namespace taas::node {
namespace {

constexpr int kInstanceBytes = 8;
constexpr const char* kAllAddresses = "0.0.0.0";
constexpr auto kClosingPatience = std::chrono::seconds(1);  // at the end, for a coordinator that does not answer

/// A machine without a network can still be the only one of a run.
Result<std::vector<std::string>> own_addresses(const std::string& interface) {
  auto addresses = net::candidate_addresses(interface);
  if (addresses && addresses->empty()) return std::vector<std::string>{net::loopback_address()};
  return addresses;
}

/// For what has a secret, or never listens: one address of an interface that the user chose, all of the machine's else.
std::string listen_address(const std::string& interface, const std::vector<std::string>& addresses) {
  return interface.empty() && addresses.size() > 1 ? kAllAddresses : addresses.front();
}

AgentLoopOptions loop_options(AgentProcessOptions options, std::vector<std::string> addresses) {
  AgentLoopOptions loop;
  loop.policy = agent_policy(std::chrono::milliseconds(options.bootstrap.node_timeout_ms),
                             options.machine.environment.contains("SLURM_STEP_ID"));
  loop.policy.connect_for = std::chrono::milliseconds(options.bootstrap.join_timeout_ms);
  loop.policy.coordinator_first = options.bootstrap.coordinator_first;
  loop.hello.instance = random_hex(kInstanceBytes);
  loop.hello.version = kLauncherVersion;
  loop.hello.hostname = options.bootstrap.name.empty() ? options.machine.hostname : options.bootstrap.name;
  loop.hello.order = options.bootstrap.order;
  loop.hello.gpus = options.machine.gpus;
  loop.hello.cores = options.machine.cores;
  loop.hello.ranks = options.bootstrap.ranks;
  if (options.bootstrap.data) {
    loop.hello.role = run::AgentRole::kData;
    loop.data_workers = options.bootstrap.data_workers;
  }
  loop.listen_address = listen_address(options.bootstrap.interface, addresses);
  if (!options.bootstrap.data) loop.store_addresses = addresses;
  loop.hello.addresses = std::move(addresses);
  loop.machine = std::move(options.machine);
  loop.resolve = std::move(options.resolve);
  return loop;
}

void say_here(const std::string& text) {
  log::info(LogPart::kAgent, "said on the console: {}", text);
  std::fputs(fmt::format("taas-run: {}\n", printable(text)).c_str(), stderr);
}

}  // namespace

Result<std::optional<int>> serve_as_agent(AgentProcessOptions options, Lifeline lifeline) {
  if (auto wish = parse_log_settings(options.bootstrap.log_level)) log::configure(*wish);
  boost::asio::io_context io(1);
  end_with_keeper(io, lifeline);
  auto key = net::parse_key(options.bootstrap.key);
  if (!key) return key.error();
  auto addresses = own_addresses(options.bootstrap.interface);
  if (!addresses) return addresses.error();
  net::ConnectOptions connect{
      options.bootstrap.addresses, options.bootstrap.port, {options.bootstrap.run_id, std::move(*key)}};
  bool taken_over = false;
  if (options.takes_over) {
    connect.on_found = [&taken_over, takes_over = std::move(options.takes_over)](const auto& found) {
      taken_over = takes_over(found);
      return !taken_over;
    };
  }

  const bool in_step = options.machine.environment.contains("SLURM_STEP_ID");
  AgentLoop agent(io, loop_options(std::move(options), std::move(*addresses)));
  agent.set_uplink(make_uplink(io, std::move(connect), agent));
  std::optional<run::Leave> left;
  agent.set_on_leave([&left](run::Leave leave) { left = std::move(leave); });
  agent.set_on_notice(say_here);
  JobSignals signals(io, {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2},
                     in_step ? JobPlace::kStep : JobPlace::kNone, [&agent](int signal, Instant at, bool reached_ranks) {
                       agent.feed(run::AgentSignalled{signal, at, reached_ranks});
                     });
  agent.begin();
  while (!left && !taken_over) io.run_one();
  if (!left) return std::optional<int>();
  if (!left->reason.empty()) say_here(left->reason);
  bool closed = false;
  Timer patience(io, [&closed] { closed = true; });
  patience.set(steady_now() + kClosingPatience);
  agent.close([&closed] { closed = true; });
  while (!closed) io.run_one();
  return std::optional(left->exit_code);
}

}  // namespace taas::node
