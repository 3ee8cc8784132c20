#include "parse/cli.hpp"

#include <csignal>
#include <vector>

#include "catch.hpp"
#include "parsed_command_line.hpp"

namespace cli_test {

using namespace taas;
using namespace taas::cli;
using parsed_command_line::error_of;
using parsed_command_line::options;
using parsed_command_line::read;
using parsed_command_line::Words;

TEST_CASE("every flag ends where it belongs") {
  auto all = options({"--gpus",
                      "4",
                      "--gpus-per-node=2",
                      "--nnodes",
                      "2",
                      "--nproc-per-node",
                      "auto",
                      "--oversubscribe",
                      "-m",
                      "--virtual-local-rank",
                      "--role",
                      "trainer",
                      "--rdzv-backend",
                      "c10d",
                      "--rdzv-endpoint",
                      "localhost:1",
                      "--rdzv-id",
                      "job",
                      "--node-rank",
                      "0",
                      "--master-addr",
                      "a",
                      "--master-port",
                      "7",
                      "--store",
                      "rank0",
                      "--max-restarts",
                      "3",
                      "--shutdown-timeout",
                      "1.5",
                      "--leftover-timeout",
                      "60",
                      "--signals-to-handle",
                      "SIGTERM,SIGUSR1",
                      "--output",
                      "out",
                      "--protect",
                      "p",
                      "--protect",
                      "q",
                      "--log-dir",
                      "logs",
                      "-r",
                      "1",
                      "-t",
                      "0:2",
                      "--local-ranks-filter",
                      "0,1",
                      "--log-line-prefix-template",
                      "${rank} ",
                      "--color",
                      "never",
                      "--json",
                      "-v",
                      "--dry-run",
                      "prog",
                      "a"});
  CHECK(all.size.gpus == 4);
  CHECK(all.size.gpus_per_node == 2);
  CHECK(all.size.nnodes == "2");
  CHECK(all.size.nproc_per_node == "auto");
  CHECK(all.size.oversubscribe);
  CHECK(all.program.program == "prog");
  CHECK(all.program.arguments == Words{"a"});
  CHECK(all.program.module);
  CHECK(all.rendezvous.virtual_local_rank);
  CHECK(all.rendezvous.role == "trainer");
  CHECK(all.rendezvous.backend == "c10d");
  CHECK(all.rendezvous.endpoint == "localhost:1");
  CHECK(all.rendezvous.run_id == "job");
  CHECK(all.rendezvous.node_rank == 0);
  CHECK(all.rendezvous.master_addr == "a");
  CHECK(all.rendezvous.master_port == 7);
  CHECK(all.rendezvous.store == plan::StoreHost::kRankZero);
  CHECK(all.supervision.max_restarts == 3);
  CHECK(all.supervision.shutdown_timeout == std::chrono::milliseconds(1500));
  CHECK(all.supervision.leftover_timeout == std::chrono::minutes(1));
  CHECK(all.supervision.signals_to_handle == std::vector<int>{SIGTERM, SIGUSR1});
  CHECK(all.output.directory == "out");
  CHECK(all.output.protected_directories == Words{"p", "q"});
  CHECK(all.output.log_dir == "logs");
  CHECK(all.output.redirects == "1");
  CHECK(all.output.tee == "0:2");
  CHECK(all.output.local_ranks_filter == std::vector<int>{0, 1});
  CHECK(all.output.prefix_template == "${rank} ");
  CHECK(all.output.color == plan::Color::kNever);
  CHECK(all.output.json);
  CHECK(all.output.verbosity == plan::Verbosity::kVerbose);
  CHECK(all.dry_run);
  auto others = options({"--no-python", "--run-path", "--standalone", "-q", "--store", "agent", "x"});
  CHECK(others.program.no_python);
  CHECK(others.program.script);
  CHECK(others.rendezvous.standalone);
  CHECK(others.rendezvous.store == plan::StoreHost::kLauncher);
  CHECK(others.output.verbosity == plan::Verbosity::kQuiet);
}

TEST_CASE("flags of other machines end where they belong") {
  auto nodes = options({"--hosts",
                        "a,b:8",
                        "--spares",
                        "2",
                        "--interface",
                        "eth1",
                        "--token-file",
                        "t",
                        "--node-timeout",
                        "0.5",
                        "--join-timeout",
                        "5",
                        "--ssh",
                        "ssh -v",
                        "--remote-taas-run",
                        "/r",
                        "--local-addr",
                        "me",
                        "--node-rank",
                        "3",
                        "--nnodes",
                        "2:4",
                        "x"});
  CHECK(nodes.nodes.hosts == "a,b:8");
  CHECK(nodes.nodes.spares == 2);
  CHECK(nodes.nodes.interface == "eth1");
  CHECK(nodes.nodes.token_file == "t");
  CHECK(nodes.nodes.node_timeout == std::chrono::milliseconds(500));
  CHECK(nodes.nodes.join_timeout == std::chrono::seconds(5));
  CHECK(nodes.nodes.ssh_command == "ssh -v");
  CHECK(nodes.nodes.remote_taas_run == "/r");
  CHECK(nodes.rendezvous.local_addr == "me");
  CHECK(nodes.rendezvous.node_rank == 3);
  CHECK(nodes.size.nnodes == "2:4");
  auto slurm = options({"--slurm", "--detach", "--partition", "gpu", "--account", "us", "--time", "1:00", "--gres",
                        "gpu:8", "--slurm-option", "qos=high", "--slurm-option", "mem=4G", "--preempt-signal",
                        "SIGUSR1", "--requeue", "x"})
                   .slurm;
  CHECK(slurm.submit);
  CHECK(slurm.detach);
  CHECK(slurm.partition == "gpu");
  CHECK(slurm.account == "us");
  CHECK(slurm.time == "1:00");
  CHECK(slurm.gres == "gpu:8");
  CHECK(slurm.options == Words{"qos=high", "mem=4G"});
  CHECK(slurm.preempt_signal == SIGUSR1);
  CHECK(slurm.requeue);
}

TEST_CASE("torchrun's configuration of the rendezvous is read as far as it means something") {
  auto known = options({"--rdzv-conf", "join_timeout=5,last_call_timeout=0.5,is_host=True", "x"});
  CHECK(known.nodes.join_timeout == std::chrono::seconds(5));
  CHECK(known.nodes.elastic_wait == std::chrono::milliseconds(500));
  CHECK(known.nodes.is_host == true);
  CHECK(known.without_effect.empty());
  CHECK(options({"--rdzv-conf", "is_host=0,timeout=5", "x"}).nodes.is_host == false);
}

TEST_CASE("an agent needs no program, and is in no help, config file or suggestion") {
  CHECK(options({"--as-agent"}).as_agent);
  CHECK(std::get<PrintAndExit>(*read({"--help"})).text.find("agent of one node") == std::string::npos);
  CHECK(error_of({"--config", "run.toml", "x"}, {}, "as-agent = true\n") ==
        "run.toml: line 1: as-agent: only for the command line");
  CHECK(error_of({"--as-agents", "x"}).find("--as-agent?") == std::string::npos);
}

TEST_CASE("flags of torchrun without a meaning are accepted and remembered") {
  CHECK(options({"--start-method=fork", "--rdzv_conf", "timeout=5", "--local-addr", "h", "--event-log-handler", "null",
                 "x"})
            .without_effect == Words{"--rdzv-conf", "--start-method"});
}

TEST_CASE("what follows the program is the program's") {
  auto both = options({"--gpus", "2", "x.py", "--gpus", "3", "--help", "--no-such", "--", "-m"});
  CHECK(both.size.gpus == 2);
  CHECK(both.program.arguments == Words{"--gpus", "3", "--help", "--no-such", "--", "-m"});
  auto after_dashes = options({"--gpus", "2", "--", "x.py", "--", "y"});
  CHECK(after_dashes.program.program == "x.py");
  CHECK(after_dashes.program.arguments == Words{"--", "y"});
}

TEST_CASE("help and version are for printing, and win over a missing program") {
  for (auto flag : {"--help", "-h", "--h", "--he"}) {
    auto outcome = read({flag});
    REQUIRE(outcome.has_value());
    CHECK_THAT(std::get<PrintAndExit>(*outcome).text, ContainsSubstring("Usage: taas-run"));
  }
  for (auto flag : {"--version", "-V"}) {
    auto version = read({"--gpus", "x", flag});
    REQUIRE(version.has_value());
    CHECK_THAT(std::get<PrintAndExit>(*version).text, ContainsSubstring("taas-run 0."));
  }
}

}  // namespace cli_test
