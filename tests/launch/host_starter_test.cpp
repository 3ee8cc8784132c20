#include "launch/host_starter.hpp"

#include <algorithm>
#include <csignal>

#include "catch.hpp"

namespace host_starter_test {

using namespace taas;
using namespace taas::launch;

namespace {

const HostEntry kHost{2, "node2", {"ssh", "node2"}};

}  // namespace

TEST_CASE("how a host failed is said in one line that names it") {
  struct Row {
    ExitStatus status;
    std::vector<std::string> said;
    const char* line;
  };
  const Row rows[]{
      {{255},
       {"ssh: connect to host node2 port 22: Connection refused"},
       "node2: ssh: connect to host node2 port 22: Connection refused"},
      {{255},
       {"root@node2: Permission denied (publickey).", "Warning: something"},
       "node2: root@node2: Permission denied (publickey)."},
      {{255}, {}, "node2: it said nothing"},
      {{127},
       {"sh: 1: exec: /opt/taas-run: not found"},
       "node2: taas-run cannot be run there (sh: 1: exec: /opt/taas-run: not found): install it there, or say where "
       "with "
       "--remote-taas-run"},
      {{2},
       {"taas-run: unknown option --as-agent"},
       "node2: the agent ended with code 2: taas-run: unknown option --as-agent"},
      {{0, SIGKILL}, {}, "node2: ssh was killed by SIGKILL"},
  };
  for (const auto& row : rows) CHECK(explain_end(kHost, row.status, row.said) == row.line);
}

TEST_CASE("a step that waits for busy nodes says so, with the way out") {
  const HostEntry step{-1, "job 17", step_command(2, "/usr/bin/taas-run")};
  auto text =
      explain_waiting(step, "srun: Job 17 step creation temporarily disabled, retrying (Requested nodes are busy)");
  CHECK(text.starts_with("job 17: its nodes are busy with another step"));
  CHECK(text.find("SLURM_OVERLAP=1") != text.npos);
  CHECK(explain_waiting(step, "srun: Step created for job 17").empty());
  CHECK(explain_waiting(kHost, "all nodes are busy").empty());
  text = explain_late_step(step);
  CHECK(text.starts_with("job 17: srun has not started the step yet"));
  CHECK(text.find("SLURM_OVERLAP=1") != text.npos);
}

TEST_CASE("a step outlives a node that SLURM declares down") {
  auto command = step_command(2, "/usr/bin/taas-run");
  CHECK(std::count(command.begin(), command.end(), "--no-kill") == 1);
}

TEST_CASE("ssh asks nothing, gives up within ten seconds, and passes paths on as one word") {
  auto command = ssh_command("ssh -F my_config", "me@node2", "/opt/it's here/taas-run");
  CHECK(std::vector(command.begin(), command.begin() + 3) == std::vector<std::string>{"ssh", "-F", "my_config"});
  CHECK(std::count(command.begin(), command.end(), "BatchMode=yes") == 1);
  CHECK(std::count(command.begin(), command.end(), "ConnectTimeout=8") == 1);
  CHECK(command[command.size() - 3] == "--");
  CHECK(command[command.size() - 2] == "me@node2");
  CHECK(command.back() == "exec '/opt/it'\\''s here/taas-run' --as-agent");
}

}  // namespace host_starter_test
