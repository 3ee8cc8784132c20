#include "plan/options/launch_settings.hpp"

#include "base/json/json.hpp"
#include "catch.hpp"

namespace launch_settings_test {

using namespace taas;
using namespace taas::plan;

using Environment = std::map<std::string, std::string>;

TEST_CASE("the user's wishes go to other nodes, what belongs to a machine or session stays") {
  const Environment wishes{{"PATH", "/opt/bin"},     {"LD_LIBRARY_PATH", "/opt/lib"},
                           {"VIRTUAL_ENV", "/venv"}, {"PYTHONPATH", "/src"},
                           {"NCCL_DEBUG", "INFO"},   {"OMP_NUM_THREADS", "4"},
                           {"LANG", "C.UTF-8"},      {"WANDB_API_KEY", "x"},
                           {"TAAS_ANYTHING", "1"},   {"HF_HOME", "/data"},
                           {"PMATCH", ""},           {"SLURMY", "no prefix"}};
  Environment all = wishes;
  for (auto stays : {"HOME",
                     "USER",
                     "LOGNAME",
                     "SHELL",
                     "PWD",
                     "OLDPWD",
                     "SHLVL",
                     "_",
                     "HOSTNAME",
                     "TMPDIR",
                     "TERM",
                     "TERM_PROGRAM",
                     "DISPLAY",
                     "SSH_CONNECTION",
                     "SSH_AUTH_SOCK",
                     "XDG_RUNTIME_DIR",
                     "DBUS_SESSION_BUS_ADDRESS",
                     "SLURM_JOB_ID",
                     "SLURMD_NODENAME",
                     "SRUN_CPUS_PER_TASK",
                     "PMI_RANK",
                     "PMIX_ID",
                     "OMPI_COMM_WORLD_RANK",
                     "PET_NNODES",
                     "TMUX",
                     "CUDA_VISIBLE_DEVICES",
                     "HIP_VISIBLE_DEVICES",
                     "NCCL_SOCKET_IFNAME",
                     "NCCL_IB_HCA",
                     "NCCL_HOSTID",
                     "GLOO_SOCKET_IFNAME",
                     "UCX_NET_DEVICES",
                     "FI_PROVIDER",
                     "TAAS_TOKEN"}) {
    all[stays] = "x";
  }
  CHECK(forwarded_environment(all) == wishes);
}

TEST_CASE("what is forwarded wins on a node, but for its own library path") {
  std::map<std::string, std::string> node{{"PATH", "/bin"}, {"LD_LIBRARY_PATH", "/own"}, {"ONLY_HERE", "1"}};
  bring_along({{"PATH", "/conda/bin"}, {"LD_LIBRARY_PATH", "/theirs"}, {"NEW", "2"}}, node);
  CHECK(node == std::map<std::string, std::string>{
                    {"PATH", "/conda/bin"}, {"LD_LIBRARY_PATH", "/own"}, {"ONLY_HERE", "1"}, {"NEW", "2"}});
  std::map<std::string, std::string> bare;
  bring_along({{"LD_LIBRARY_PATH", "/theirs"}}, bare);
  CHECK(bare.at("LD_LIBRARY_PATH") == "/theirs");
}

TEST_CASE("settings travel as JSON and arrive as they were") {
  LaunchSettings settings;
  settings.run_id = "run-1";
  settings.device = Device::kGpu;
  settings.simulated = true;
  settings.restarts_before = 2;
  settings.environment = {{"A", "1"}, {"EMPTY", ""}};
  settings.working_directory = "/work";
  auto& options = settings.options;
  options.program = {"train.py", {"--lr", "0.1"}, true, true, true};
  options.size = {32, 8, "2:4", "gpu", true, 2};
  options.nodes.hosts = "a,b";
  options.nodes.node_timeout = std::chrono::milliseconds(1500);
  options.nodes.is_host = false;
  options.slurm.options = {"qos=high"};
  options.rendezvous.run_id = "x";
  options.rendezvous.node_rank = 3;
  options.supervision.signals_to_handle = {15, 10};
  options.supervision.shutdown_timeout = std::chrono::milliseconds(250);
  options.output.verbosity = Verbosity::kVerbose;
  options.output.color = Color::kNever;
  options.without_effect = {"--start-method"};

  auto json = to_json(settings);
  auto arrived = from_json<LaunchSettings>(json);
  REQUIRE(arrived.has_value());
  CHECK(to_json(*arrived) == json);
  CHECK(arrived->device == Device::kGpu);
  CHECK(arrived->environment == settings.environment);
  CHECK(arrived->options.size.nnodes == "2:4");
  CHECK(arrived->options.nodes.node_timeout == std::chrono::milliseconds(1500));
  CHECK(arrived->options.nodes.is_host == false);
  CHECK(arrived->options.rendezvous.node_rank == 3);
  CHECK_FALSE(arrived->options.rendezvous.master_port);
  CHECK(arrived->options.output.color == Color::kNever);
  CHECK(arrived->options.supervision.signals_to_handle == std::vector<int>{15, 10});
}

}  // namespace launch_settings_test
