// Where values come from: the command line, the environment, files, and what is built in.
#include <cctype>
#include <csignal>

#include "catch.hpp"
#include "flags/flags.hpp"
#include "parsed_command_line.hpp"

namespace cli_sources_test {

using namespace taas;
using namespace taas::cli;
using parsed_command_line::error_of;
using parsed_command_line::options;
using parsed_command_line::read;

TEST_CASE("a hostfile is read with the command line") {
  auto read = options({"--hostfile", "run.toml", "x"}, {}, "a\nb:2\n");
  CHECK(read.nodes.hostfile_text == "a\nb:2\n");
  CHECK(error_of({"--hostfile", "none", "x"}) == "--hostfile: none: no such file");
}

TEST_CASE("nothing but the program leaves what is built in") {
  auto plain = options({"x"});
  CHECK_FALSE(plain.size.gpus);
  CHECK(plain.supervision.shutdown_timeout == std::chrono::seconds(30));
  CHECK(plain.output.directory == "./taas-runs");
  CHECK(plain.without_effect.empty());
  CHECK(plain.nodes.node_timeout == std::chrono::seconds(30));
  CHECK(plain.nodes.join_timeout == std::chrono::seconds(600));
  CHECK(plain.nodes.ssh_command == "ssh");
  CHECK(plain.slurm.preempt_signal == SIGUSR2);
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

TEST_CASE("blanks and line ends around values, and in lists of them, are nothing") {
  CHECK(options({"--max-restarts", " 3\r", "x"}).supervision.max_restarts == 3);
  CHECK(options({"--nproc-per-node", "2\n", "--nnodes", " 1 ", "x"}).size.nproc_per_node == "2");
  CHECK(options({"x"}, {{"PET_MAX_RESTARTS", "\t1 \r\n"}, {"PET_NNODES", " \r"}}).supervision.max_restarts == 1);
  CHECK(options({"--nproc-per-node", "2", "--local-ranks-filter", "0, 1", "x"}).output.local_ranks_filter ==
        std::vector<int>{0, 1});
  auto read = options({"--rdzv-conf", "timeout=9, join_timeout = 7 ,is_host=true\r", "x"});
  CHECK((read.nodes.join_timeout == std::chrono::seconds(7) && read.nodes.is_host == true));
  CHECK(options({"--output", " a b ", "x"}).output.directory == " a b ");
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

}  // namespace cli_sources_test
