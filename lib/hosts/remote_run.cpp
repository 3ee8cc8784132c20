#include "hosts/remote_run.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>

#include "base/json.hpp"
#include "hosts/launch.hpp"
#include "hosts/links.hpp"
#include "hosts/policies.hpp"
#include "hosts/preparation.hpp"
#include "hosts/run_loop.hpp"
#include "hosts/timer.hpp"
#include "proc/family.hpp"
#include "proc/signals.hpp"

namespace taas::hosts {
namespace {

constexpr auto kPartingPatience = std::chrono::seconds(3);  // for agents that were dismissed

Bootstrap make_bootstrap(const RemoteRunOptions& options, std::uint16_t port) {
  const auto& nodes = options.plan.options.nodes;
  Bootstrap bootstrap;
  bootstrap.run_id = options.secret.run_id;
  bootstrap.key = net::print_key(options.secret.key);
  bootstrap.addresses = options.listen_addresses;
  bootstrap.port = port;
  bootstrap.interface = nodes.interface;
  bootstrap.node_timeout_ms = static_cast<int>(nodes.node_timeout.count());
  return bootstrap;
}

run::CoordinatorPolicy make_policy(const RemoteRunOptions& options, const storage::RunDirectory& folder) {
  auto policy = coordinator_policy(options.plan);
  Launch launch;
  launch.settings = plan::launch_settings(options.plan, options.machine, options.working_directory);
  launch.run_folder = folder.path();
  launch.log_folder = folder.log_dir();
  launch.most_ranks_on_node = *std::max_element(policy.ranks_on_node.begin(), policy.ranks_on_node.end());
  policy.launch = boost::json::serialize(to_json(launch));
  return policy;
}

/// Agents that were dismissed end by themselves, and with them what they were started with; the rest is ended.
void part(boost::asio::io_context& io, Family& family) {
  bool gone = false;
  Timer patience(io, [&] { family.sweep(SIGKILL, [&] { gone = true; }); });
  patience.set(steady_now() + kPartingPatience);
  family.sweep(0, [&] { gone = true; });
  while (!gone) io.run_one();
}

}  // namespace

Result<RunEnd> coordinate(RemoteRunOptions options, Lifeline lifeline) {
  boost::asio::io_context io(1);
  end_with_keeper(io, lifeline);
  std::unique_ptr<RunLoop> run;  // there before the event loop turns for the first time
  auto listener = net::Listener::listen(io, {options.listen_addresses, options.port, options.secret},
                                        [&run](std::unique_ptr<net::Link> link) {
                                          if (run) admit(std::move(link), *run);  // who comes after the end is too late
                                        });
  if (!listener) return listener.error();
  auto folder = create_run_folder(options.plan);
  if (!folder) return folder.error();
  auto journal = JournalFile::open(folder->journal_path(), steady_now());
  if (!journal) return journal.error();
  auto bootstrap = make_bootstrap(options, (*listener)->port());
  if (auto told = options.on_listening(bootstrap); !told) return told.error();

  RunLoopOptions loop{make_policy(options, *folder), options.plan, options.machine, folder->files()};
  run = std::make_unique<RunLoop>(io, std::move(loop), std::move(*journal));
  Family family(io);
  HostStarter starter(io, family, {options.hosts, as_list(options.machine.environment), bootstrap},
                      [&run](int order, const std::string& message) {
                        if (run) run->host_failed(order, message);
                      });
  run->set_on_start_agent([&starter](int order) { starter.start(order); });
  run->set_on_arrival([&starter](int order) { starter.arrived(order); });
  starter.start_all();
  RunEnd end{run->execute(), run->told_to_stop()};
  hold_stop_signals();
  run.reset();
  part(io, family);
  return end;
}

}  // namespace taas::hosts
