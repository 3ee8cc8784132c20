// What a user is told of a wrong command line.
#include <string>

#include "catch.hpp"
#include "parsed_command_line.hpp"

namespace cli_errors_test {

using namespace taas;
using namespace taas::cli;
using parsed_command_line::error_of;

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

}  // namespace cli_errors_test
