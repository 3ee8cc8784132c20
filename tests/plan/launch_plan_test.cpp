#include "plan/launch_plan.hpp"

#include "catch.hpp"

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

TEST_CASE("ranks of all simulated nodes share this machine's cores") {
  CHECK(make_plan(with_gpus(1), kMachine, "id")->omp_threads == 4);
  CHECK(make_plan(with_gpus(2), kMachine, "id")->omp_threads == 2);
  CHECK(make_plan(with_gpus(3), kMachine, "id")->omp_threads == 1);
  CHECK(make_plan(with_gpus(16), kMachine, "id")->omp_threads == 1);
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
  options.without_effect = {"--monitor-interval", "--start-method"};
  CHECK(make_plan(options, kMachine, "id")->notices ==
        std::vector<std::string>{"without effect here: --monitor-interval, --start-method"});
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
