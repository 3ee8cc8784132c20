#include "parse/cli.hpp"

#include <csignal>
#include <vector>

#include "catch.hpp"
#include "flags/flags.hpp"

namespace cli_test {

using namespace taas;
using namespace taas::cli;

namespace {

using Words = std::vector<std::string>;

/// A disk with one file.
FileReader file(std::string content) {
  return [content](const std::string& path) -> Result<std::string> {
    if (path == "run.toml") return content;
    return unavailable_error(path + ": no such file");
  };
}

Result<ParseOutcome> read(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  return parse(arguments, environment, file(std::move(config)));
}

plan::Options options(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  auto outcome = read(arguments, environment, std::move(config));
  if (!outcome) FAIL(outcome.error().message);
  REQUIRE(std::holds_alternative<plan::Options>(*outcome));
  return std::get<plan::Options>(*outcome);
}

std::string error_of(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  auto outcome = read(arguments, environment, std::move(config));
  REQUIRE(outcome.has_error());
  CHECK(outcome.error().code == ErrorCode::kUsage);
  return outcome.error().message;
}

}  // namespace

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

TEST_CASE("a hostfile is read with the command line") {
  auto read = options({"--hostfile", "run.toml", "x"}, {}, "a\nb:2\n");
  CHECK(read.nodes.hostfile_text == "a\nb:2\n");
  CHECK(error_of({"--hostfile", "none", "x"}) == "--hostfile: none: no such file");
}

TEST_CASE("an agent needs no program, and is in no help, config file or suggestion") {
  CHECK(options({"--as-agent"}).as_agent);
  CHECK(std::get<PrintAndExit>(*read({"--help"})).text.find("agent of one node") == std::string::npos);
  CHECK(error_of({"--config", "run.toml", "x"}, {}, "as-agent = true\n") ==
        "run.toml: line 1: as-agent: only for the command line");
  CHECK(error_of({"--as-agents", "x"}).find("--as-agent?") == std::string::npos);
}

TEST_CASE("nothing but the program leaves what is built in") {
  auto plain = options({"x"});
  CHECK_FALSE(plain.size.gpus);
  CHECK(plain.supervision.shutdown_timeout == std::chrono::seconds(30));
  CHECK(plain.output.directory == "./taas-runs");
  CHECK(plain.without_effect.empty());
  CHECK(plain.nodes.node_timeout == std::chrono::milliseconds(2500));
  CHECK(plain.nodes.join_timeout == std::chrono::seconds(600));
  CHECK(plain.nodes.ssh_command == "ssh");
  CHECK(plain.slurm.preempt_signal == SIGUSR2);
}

TEST_CASE("flags of torchrun without a meaning are accepted and remembered") {
  CHECK(options({"--monitor-interval", "0.5", "--start-method=fork", "--rdzv_conf", "timeout=5", "--local-addr", "h",
                 "--event-log-handler", "null", "x"})
            .without_effect == Words{"--monitor-interval", "--rdzv-conf", "--start-method"});
}

TEST_CASE("what follows the program is the program's") {
  auto both = options({"--gpus", "2", "x.py", "--gpus", "3", "--help", "--no-such", "--", "-m"});
  CHECK(both.size.gpus == 2);
  CHECK(both.program.arguments == Words{"--gpus", "3", "--help", "--no-such", "--", "-m"});
  auto after_dashes = options({"--gpus", "2", "--", "x.py", "--", "y"});
  CHECK(after_dashes.program.program == "x.py");
  CHECK(after_dashes.program.arguments == Words{"--", "y"});
}

TEST_CASE("both spellings work, in every source") {
  CHECK(options({"--max_restarts", "2", "x"}).supervision.max_restarts == 2);
  CHECK(options({"--config", "run.toml", "x"}, {}, "max_restarts = 2\n").supervision.max_restarts == 2);
  CHECK(options({"--config", "run.toml", "x"}, {}, "max-restarts = 2\n").supervision.max_restarts == 2);
}

TEST_CASE("the command line wins over PET, that over the file, that over what is built in") {
  const Environment pet{{"PET_MAX_RESTARTS", "2"}};
  const std::string config = "max-restarts = 3\n";
  CHECK(options({"--max-restarts", "1", "--config", "run.toml", "x"}, pet, config).supervision.max_restarts == 1);
  CHECK(options({"--config", "run.toml", "x"}, pet, config).supervision.max_restarts == 2);
  CHECK(options({"--config", "run.toml", "x"}, {}, config).supervision.max_restarts == 3);
  CHECK(options({"x"}).supervision.max_restarts == 0);
  CHECK(options({"--verbose", "--config", "run.toml", "x"}, {}, "quiet = true\n").output.verbosity ==
        plan::Verbosity::kVerbose);
}

TEST_CASE("a wrong value that is overridden does no harm") {
  CHECK(options({"--max-restarts", "1", "x"}, {{"PET_MAX_RESTARTS", "many"}}).supervision.max_restarts == 1);
}

TEST_CASE("every flag that torchrun reads from PET is read from it, and only those") {
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      std::string variable = "PET_";
      for (char letter : flag.name) variable += letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
      CAPTURE(variable);
      auto outcome = read({"x"}, {{variable, "\x01"}});
      bool free_text = flag.name == "role" || flag.name == "rdzv-id" || flag.name == "master-addr" ||
                       flag.name == "local-addr" || flag.name == "log-dir" || flag.name == "log-line-prefix-template" ||
                       flag.name == "rdzv-endpoint" || flag.name == "signals-to-handle";
      if (flag.origin != Flag::Origin::kTorchrun || free_text) {
        CHECK(outcome.has_value());
      } else {
        REQUIRE(outcome.has_error());
        CHECK_THAT(outcome.error().message, ContainsSubstring(variable + "=\\x01: "));
      }
    }
  }
  CHECK(options({"x"}, {{"PET_RDZV_ID", "job"}}).rendezvous.run_id == "job");
  CHECK(options({"x"}, {{"PET_STANDALONE", "1"}}).rendezvous.standalone);
  CHECK_FALSE(options({"x"}, {{"PET_STANDALONE", "0"}}).rendezvous.standalone);
  CHECK_FALSE(options({"x"}, {{"PET_NNODES", ""}}).size.nnodes);
}

TEST_CASE("torchrun's other variable for the shutdown timeout is the weakest") {
  const Environment other{{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "5"}};
  CHECK(options({"x"}, other).supervision.shutdown_timeout == std::chrono::seconds(5));
  CHECK(options({"--config", "run.toml", "x"}, other, "shutdown-timeout = 6\n").supervision.shutdown_timeout ==
        std::chrono::seconds(6));
  CHECK(error_of({"x"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon"}}) ==
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon: not a number of seconds");
}

TEST_CASE("a wrong value is told with the place that it came from") {
  CHECK(error_of({"--gpus", "many", "x"}) == "--gpus many: not a whole number from 1");
  CHECK(error_of({"--gpus", "0", "x"}) == "--gpus 0: not a whole number from 1");
  CHECK(error_of({"x"}, {{"PET_NPROC_PER_NODE", "many"}}) ==
        "PET_NPROC_PER_NODE=many: not a number of processes, auto, gpu or cpu");
  CHECK(error_of({"x"}, {{"PET_NODE_RANK", "-1"}}) == "PET_NODE_RANK=-1: not a whole number from 0");
  CHECK(error_of({"--config", "run.toml", "x"}, {}, "gpus = 0\n") == "run.toml: gpus = 0: not a whole number from 1");
  CHECK(error_of({"--config", "run.toml", "x"}, {}, "gpu = 1\n") ==
        "run.toml: line 1: gpu: no such option; did you mean gpus?");
  CHECK(error_of({"--config", "none.toml", "x"}) == "--config: none.toml: no such file");
}

TEST_CASE("each wrong value has its own answer") {
  struct Row {
    const char* flag;
    const char* value;
    const char* why;
  };
  const Row rows[] = {
      {"--gpus-per-node", "0", "not a whole number from 1"},
      {"--nnodes", "x", "not a number of nodes, such as 2, or a range, such as 2:4"},
      {"--hosts", "a b", "a b: not a host, such as node7, node7:8, user@node7 or [::1]:8"},
      {"--hostfile", "", "the value is empty"},
      {"--spares", "-1", "not a whole number from 0"},
      {"--token-file", "", "the value is empty"},
      {"--node-timeout", "0.4", "less than 0.5 seconds: a busy machine would look like a lost one"},
      {"--node-timeout", "x", "not a number of seconds"},
      {"--join-timeout", "x", "not a number of seconds"},
      {"--ssh", " ", "the command is empty"},
      {"--partition", "", "the value is empty"},
      {"--slurm-option", "--qos=high", "not KEY=VALUE, such as qos=high"},
      {"--slurm-option", "qos", "not KEY=VALUE, such as qos=high"},
      {"--preempt-signal", "NONE", "not a signal, such as USR2"},
      {"--preempt-signal", "KILL", "KILL cannot be handled"},
      {"--rdzv-conf", "join_timeout=soon", "join_timeout: not a number of seconds"},
      {"--rdzv-conf", "is_host=perhaps", "is_host: neither true nor false"},
      {"--master-port", "65536", "not a whole number from 0 to 65535"},
      {"--node-rank", "-1", "not a whole number from 0"},
      {"--rdzv-backend", "etcd", "not available; static and c10d are"},
      {"--rdzv-endpoint", "h:p", "the port is not a number up to 65535; say localhost:29500"},
      {"--rdzv-conf", "x", "not a list of KEY=VALUE,KEY=VALUE"},
      {"--store", "me", "not agent or rank0"},
      {"--max-restarts", "-1", "not a whole number from 0"},
      {"--shutdown-timeout", "-1", "not a number of seconds"},
      {"--signals-to-handle", "SIGTERM,", "not a list of signals, such as SIGTERM,SIGUSR1"},
      {"--monitor-interval", "x", "not a number of seconds"},
      {"--event-log-handler", "x",
       "handlers are Python plug-ins of torchrun; the events of a run are in its journal.jsonl"},
      {"--start-method", "thread", "not one of spawn, fork, forkserver"},
      {"--output", "", "the folder's name is empty"},
      {"--redirects", "4", "not a choice of streams; 0 is none, 1 stdout, 2 stderr, 3 both, or by local rank: 0:1,1:3"},
      {"--tee", "x", "not a choice of streams; 0 is none, 1 stdout, 2 stderr, 3 both, or by local rank: 0:1,1:3"},
      {"--local-ranks-filter", "a", "not a list of whole numbers, such as 0,1,2"},
      {"--color", "pink", "not one of auto, always, never"},
  };
  for (const auto& row : rows) {
    CHECK(error_of({row.flag, row.value, "x"}) ==
          std::string(row.flag) + " " + (*row.value == 0 ? "\"\"" : row.value) + ": " + row.why);
  }
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

TEST_CASE("without a program, or with orders that exclude each other") {
  CHECK(error_of({}) == "no program given; for example: taas-run --gpus 8 train");
  CHECK(error_of({"--gpus", "4"}) == "no program given; for example: taas-run --gpus 8 train");
  CHECK(error_of({"--gpus", "4", "--"}) == "no program given; for example: taas-run --gpus 8 train");
  CHECK(error_of({"-q", "-v", "x"}) == "--quiet and --verbose exclude each other");
}

TEST_CASE("an empty value is seen in an error") {
  CHECK(error_of({"--gpus", "", "x"}) == "--gpus \"\": not a whole number from 1");
  CHECK(error_of({"--config", "run.toml", "x"}, {}, "gpus = ''\n") ==
        "run.toml: gpus = \"\": not a whole number from 1");
}

TEST_CASE("an error is one line whatever was typed") {
  CHECK(error_of({"--gpus", "1\n2\x1b[31m", "x"}) == "--gpus 1\\n2\\x1b[31m: not a whole number from 1");
}

}  // namespace cli_test
