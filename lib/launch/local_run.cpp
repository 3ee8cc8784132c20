#include "launch/local_run.hpp"

#include <boost/asio/io_context.hpp>
#include <optional>

#include "base/ids.hpp"
#include "base/log/log_file.hpp"
#include "base/version.hpp"
#include "launch/coordinator_loop.hpp"
#include "launch/coordinator_policy.hpp"
#include "launch/data_hosts.hpp"
#include "net/addresses.hpp"
#include "node/agent_loop.hpp"
#include "node/launch.hpp"
#include "node/node.hpp"
#include "node/preparation.hpp"
#include "storage/run_directory.hpp"

namespace taas::launch {
namespace {

constexpr int kKeyBytes = 32;

/// The link between a coordinator and an agent in the same process: calls.
class CallingUplink : public node::Uplink {
 public:
  CallingUplink(node::AgentLoop& agent, CoordinatorLoop& run, run::AgentId number)
      : agent_(agent), run_(run), number_(number) {}
  void connect() override { agent_.feed(run::LinkUp{steady_now()}); }
  void send(const run::AgentMessage& message) override { run_.hear(number_, message); }
  void send_file(std::string) override {}  // it is the same folder
  void close(std::function<void()> on_closed) override { on_closed(); }

 private:
  node::AgentLoop& agent_;
  CoordinatorLoop& run_;
  run::AgentId number_;
};

/// The run is over: what the node still says is for nobody.
class NoUplink : public node::Uplink {
 public:
  void connect() override {}
  void send(const run::AgentMessage&) override {}
  void send_file(std::string) override {}
  void close(std::function<void()> on_closed) override { on_closed(); }
};

class CallingDownlink : public Downlink {
 public:
  explicit CallingDownlink(node::AgentLoop& agent) : agent_(agent) {}
  void tell(const run::CoordinatorMessage& message) override {
    agent_.feed(run::CoordinatorSaid{message, steady_now()});
  }

 private:
  node::AgentLoop& agent_;
};

run::CoordinatorPolicy policy_of(const plan::LaunchPlan& plan) {
  auto policy = coordinator_policy(plan);
  policy.in_process = true;
  policy.expected_agents = 1;
  return policy;
}

node::AgentLoopOptions agent_options(const LocalRunOptions& options) {
  node::AgentLoopOptions agent;
  agent.policy.in_process = true;
  agent.hello.version = kLauncherVersion;
  agent.hello.hostname = options.machine.hostname;
  agent.hello.order = 0;
  agent.hello.plays = static_cast<int>(options.plan.nodes.size());
  agent.hello.gpus = options.machine.gpus;
  agent.hello.cores = options.machine.cores;
  agent.machine = options.machine;
  return agent;
}

/// What is there once the run's folder is.
struct Opened {
  std::optional<storage::RunDirectory> folder;
  std::optional<JournalFile> journal;
};

node::NodeOptions node_options(const LocalRunOptions& options, Opened& opened) {
  node::NodeOptions node;
  node.settings = plan::launch_settings(options.plan, options.machine, "");
  node.machine = options.machine;
  node.program = options.program;
  // Every rank is here, whatever local name was asked for.
  node.store_addresses = {net::loopback_address()};
  node.most_ranks = options.plan.world_size();
  node.listen_address = node.store_addresses.front();
  node.rank_ports = plan::ports_for_ranks(options.plan.options, options.plan.world_size());
  node.data_key = random_hex(kKeyBytes);
  node.simulated_cpu_machines = options.data_hosts ? 0 : options.plan.data.count;
  node.data_workers =
      node.simulated_cpu_machines *
      plan::simulated_data_workers(options.plan.options.data, options.plan.data.count, options.machine.cores);
  node.all_output = true;
  node.in_process = true;
  node.inherits_stdin = true;
  node.open_folder = [&options, &opened]() -> Result<storage::RunDirectory> {
    auto folder = node::create_run_folder(options.plan, options.machine);
    if (!folder) return folder.error();
    auto file = JournalFile::open(folder->journal(), steady_now());
    if (!file) return file.error();
    log::open(folder->own_logs(), "launcher");
    opened.journal = std::move(*file);
    opened.folder = *folder;
    return folder;
  };
  return node;
}

}  // namespace

Result<int> run_on_this_machine(LocalRunOptions options, Lifeline lifeline) {
  boost::asio::io_context io(1);
  node::end_with_keeper(io, lifeline);
  if (auto watched = node::end_with_process(io, options.plan); !watched) return watched.error();
  std::unique_ptr<DataHostLinks> data_hosts;
  if (options.data_hosts) {
    auto listening = DataHostLinks::listen(io, options);
    if (!listening) return listening.error();
    data_hosts = std::move(*listening);
  }
  node::AgentLoop agent(io, agent_options(options));
  Opened opened;
  auto wanted = node_options(options, opened);
  auto key = wanted.data_key;
  auto node = node::Node::prepare(io, std::move(wanted), [&agent](run::AgentMessage said) {
    agent.feed(run::NodeSaid{std::move(said), steady_now()});
  });
  if (!node) return node.error();
  CoordinatorLoopOptions loop{policy_of(options.plan), options.plan, options.machine, options.started,
                              (*node)->output_directory()};
  loop.plan.note(opened.folder->notice());
  if (data_hosts) {
    loop.policy.launch =
        node::print_launch(options.plan, options.machine, options.data_hosts->working_directory, *opened.folder, key);
  }
  auto run = std::make_unique<CoordinatorLoop>(io, std::move(loop), std::move(*opened.journal));
  if (data_hosts) data_hosts->start(*run, (*node)->family());
  agent.set_uplink(std::make_unique<CallingUplink>(agent, *run, run->add(std::make_unique<CallingDownlink>(agent))));
  agent.set_node(std::move(*node));
  agent.begin();
  int code = run->execute();
  if (!data_hosts) return code;
  agent.set_uplink(std::make_unique<NoUplink>());
  run.reset();
  data_hosts->part();
  return code;
}

}  // namespace taas::launch
