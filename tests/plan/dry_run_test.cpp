#include "dry_run.hpp"

#include <boost/json.hpp>

#include "catch.hpp"

using namespace taas;

namespace {

const plan::Machine kMachine{"here", 0, 4, {}};

std::string describe(int gpus, bool json, int port = 0) {
  plan::Options options;
  options.size.gpus = gpus;
  options.output.json = json;
  options.rendezvous.master_port = port;
  auto plan = plan::make_plan(options, kMachine, "run-1");
  REQUIRE(plan.has_value());
  return cli::dry_run(*plan, kMachine, {"python3", "-u", "my script.py", "it's"});
}

}  // namespace

TEST_CASE("the plan as text has nodes, ranks, cores, environment, command and output") {
  auto text = describe(12, false);
  for (auto part : {"ranks    12 on here as 2 simulated nodes, on the CPU with gloo\n", "  node 0: ranks 0 to 5\n",
                    "  node 1: ranks 6 to 11\n", "cores    4 usable, 1 for each rank\n",
                    "command  python3 -u 'my script.py' 'it'\\''s'\n", "output   ./taas-runs/run-1\n",
                    "note     no GPU here: 12 CPU ranks with gloo on 2 simulated nodes (6 + 6)\n", "  WORLD_SIZE=12\n",
                    "  MASTER_PORT='<a free port>'\n",
                    "  rank 7: RANK=7 LOCAL_RANK=1 GROUP_RANK=1 NODE_RANK=1 ROLE_RANK=7 CROSS_RANK=1\n"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
  CHECK_THAT(describe(2, false, 29501), ContainsSubstring("MASTER_PORT=29501\n"));
}

TEST_CASE("a long list of ranks is cut, and says so") {
  CHECK_THAT(describe(100, false), ContainsSubstring("  and 36 more; --json has all\n"));
}

TEST_CASE("the plan as JSON has every rank") {
  auto text = describe(100, true);
  auto object = boost::json::parse(text).as_object();
  CHECK(object.at("world_size").as_int64() == 100);
  CHECK(object.at("nodes").as_array().size() == 13);
  const auto& ranks = object.at("ranks").as_array();
  REQUIRE(ranks.size() == 100);
  CHECK(ranks.at(99).at("environment").at("RANK").as_string() == "99");
  CHECK(object.at("command").as_array().size() == 4);
  CHECK(text.find('\n') == text.size() - 1);
}
