#include "plan/launch_plan.hpp"

#include "catch.hpp"
#include "slurm_environment.hpp"

namespace launch_plan_test {

using namespace taas;
using namespace taas::plan;

namespace {

const Machine kMachine{"here", 0, 4, {}};

Options with_gpus(int gpus) {
  Options options;
  options.size.gpus = gpus;
  return options;
}

}  // namespace

TEST_CASE("ranks are numbered node by node") {
  auto plan = make_plan(with_gpus(9), kMachine, "id");
  REQUIRE(plan.has_value());
  REQUIRE(plan->nodes.size() == 2);
  CHECK(plan->nodes[1].first_rank == Rank{5});
  CHECK(plan->nodes[1].local_world_size == 4);
  CHECK(plan->nodes[1].simulated);
  CHECK(plan->nodes[1].hostname == "here");
  CHECK(plan->world_size() == 9);
  for (int rank = 0; rank < 9; ++rank) {
    const auto& planned = plan->ranks[static_cast<std::size_t>(rank)];
    CHECK(planned.rank == Rank{rank});
    CHECK(planned.node == NodeIndex{rank < 5 ? 0 : 1});
    CHECK(planned.local_rank == (rank < 5 ? rank : rank - 5));
  }
  CHECK(plan->outputs.size() == 9);
}

TEST_CASE("one node is this machine itself") {
  auto plan = make_plan(Options{}, kMachine, "id");
  REQUIRE(plan.has_value());
  CHECK_FALSE(plan->nodes.at(0).simulated);
  CHECK(plan->world_size() == 1);
}

TEST_CASE("the run is named by --rdzv-id unless that is torchrun's default or --standalone was said") {
  Options options;
  CHECK(make_plan(options, kMachine, "made")->run_id == "made");
  options.rendezvous.run_id = "job7";
  CHECK(make_plan(options, kMachine, "made")->run_id == "job7");
  options.rendezvous.standalone = true;
  CHECK(make_plan(options, kMachine, "made")->run_id == "made");
  options = {};
  for (auto none : {"none", ""}) {
    options.rendezvous.run_id = none;
    CHECK(make_plan(options, kMachine, "made")->run_id == "made");
  }
}

TEST_CASE("flags without effect are told in one line") {
  Options options;
  options.without_effect = {"--rdzv-conf", "--start-method"};
  CHECK(make_plan(options, kMachine, "id")->notices ==
        std::vector<std::string>{"without effect here: --rdzv-conf, --start-method"});
}

TEST_CASE("a node that joins must not ask for another world than the first") {
  auto joining = [](const char* nnodes, std::optional<std::string> ranks, std::string role) {
    Options options;
    options.size.nnodes = nnodes;
    options.size.nproc_per_node = std::move(ranks);
    options.rendezvous.role = std::move(role);
    options.rendezvous.node_rank = 0;
    Machine machine = kMachine;
    machine.gpus = 3;
    machine.environment[kTokenVariable] = "secret";
    auto plan = make_plan(options, machine, "id");
    REQUIRE(plan.has_value());
    return *plan;
  };
  auto first = launch_settings(joining("2", "3", "default"), kMachine, "");
  auto said = [&first](const LaunchPlan& here) {
    auto same = check_same_wishes(here, first, 3);
    return same ? std::string() : same.error().message.substr(0, same.error().message.find(':'));
  };
  CHECK(said(joining("2", "3", "default")).empty());
  CHECK(said(joining("2", std::nullopt, "default")).empty());
  CHECK(said(joining("2", "2", "default")) == "--nproc-per-node 2 here, and 3 on the first node");
  CHECK(said(joining("4", "3", "default")) == "--nnodes 4 here, and 2 on the first node");
  CHECK(said(joining("2", "3", "actor")) == "--role actor here, and default on the first node");

  first = launch_settings(joining("2", "gpu", "default"), kMachine, "");
  auto own = joining("2", "gpu", "default");  // each counts its own GPUs
  CHECK(own.nodes_count_themselves);
  CHECK(said(own).empty());
  CHECK(said(joining("2", "cpu", "default")) == "--nproc-per-node cpu means cores here, and GPUs on the first node");
  CHECK(said(joining("2", "2", "default")) == "--nproc-per-node 2 here, and 3 on the first node");
  CHECK_FALSE(joining("2", "2", "default").nodes_count_themselves);
}

TEST_CASE("nodes of a list are named, and the plan keeps the way onto them") {
  auto options = with_gpus(16);
  options.nodes.hosts = "a,b,c";
  options.nodes.spares = 1;
  auto plan = make_plan(options, kMachine, "id");
  REQUIRE(plan.has_value());
  CHECK(std::holds_alternative<OverSsh>(plan->launch_mode));
  REQUIRE(plan->nodes.size() == 2);
  CHECK(plan->nodes[0].hostname == "a");
  CHECK(plan->nodes[1].hostname == "b");
  CHECK(plan->hosts == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(plan->nodes[1].simulated);
  CHECK(plan->spares == 1);
  CHECK(plan->expected_agents == 3);
  CHECK(plan->min_nodes == 2);
  auto place = plan->ranks.at(9);
  CHECK(place.local_rank == 1);
  CHECK(place.node == NodeIndex{1});
  CHECK(place.world_size == 16);
  CHECK(place.nodes == 2);
}

TEST_CASE("settings hold what a node has to know") {
  Machine machine{"here", 0, 4, {{"PATH", "/bin"}, {"HOME", "/root"}}};
  auto plan = make_plan(with_gpus(16), machine, "id");
  auto settings = launch_settings(*plan, machine, "/work");
  CHECK(settings.run_id == "id");
  CHECK(settings.simulated);
  CHECK(settings.working_directory == "/work");
  CHECK(settings.environment == std::map<std::string, std::string>{{"PATH", "/bin"}});
  CHECK(settings.options.size.gpus == 16);
  CHECK(settings.restarts_before == 0);
  CHECK_FALSE(launch_settings(*make_plan(with_gpus(8), machine, "id"), machine, "").simulated);
}

TEST_CASE("restarts of the job count, whatever the way") {
  Machine machine{"g0", 0, 4, batch_script()};
  machine.environment["SLURM_RESTART_COUNT"] = "3";
  for (int gpus : {8, 32}) {
    auto plan = make_plan(with_gpus(gpus), machine, "id");
    REQUIRE(plan.has_value());
    REQUIRE(plan->job);
    CHECK(launch_settings(*plan, machine, "").restarts_before == 3);
  }
}

TEST_CASE("torchrun's endpoint is not needed in a step, and that is said") {
  auto options = with_gpus(32);
  options.rendezvous.endpoint = "g0:29500";
  Machine machine{"g0", 0, 4, task_of_step(0)};
  CHECK(make_plan(options, machine, "id")->notices.at(1) ==
        "nodes of a SLURM step find each other: --rdzv-endpoint g0:29500 is not used");
}

TEST_CASE("every part's refusal is the plan's") {
  auto options = with_gpus(0);
  CHECK(make_plan(options, kMachine, "id").has_error());
  options = {};
  options.rendezvous.node_rank = 1;
  CHECK(make_plan(options, kMachine, "id").has_error());
  options = {};
  options.output.tee = "x";
  CHECK(make_plan(options, kMachine, "id").has_error());
}

}  // namespace launch_plan_test
