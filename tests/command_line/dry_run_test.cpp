#include "start/dry_run.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "catch.hpp"

namespace dry_run_test {

using namespace taas;

namespace {

const plan::Machine kMachine{"here", 0, 4, {}};

std::string describe(int gpus, bool json, int port = 0, plan::Verbosity verbosity = plan::Verbosity::kVerbose) {
  plan::Options options;
  options.output.verbosity = verbosity;
  options.size.gpus = gpus;
  options.size.oversubscribe = true;
  options.output.json = json;
  options.rendezvous.master_port = port;
  auto plan = plan::make_plan(options, kMachine, "run-1");
  REQUIRE(plan.has_value());
  return cli::dry_run(*plan, kMachine, {"python3", "-u", "my script.py", "it's"});
}

}  // namespace

TEST_CASE("the plan as text has nodes, ranks, cores, environment, command and output") {
  auto text = describe(12, false);
  for (auto part : {"way      this machine\n", "ranks    12 on here as 2 simulated nodes, on the CPU with gloo\n",
                    "  node 0: ranks 0 to 5\n", "  node 1: ranks 6 to 11\n", "cores    4 usable, 1 for each rank\n",
                    "command  python3 -u 'my script.py' 'it'\\''s'\n", "output   ./taas-runs/run-1\n",
                    "note     no GPU here: 12 CPU ranks with gloo on 2 simulated nodes (6 + 6)\n", "  WORLD_SIZE=12\n",
                    "  MASTER_PORT='<a free port>'\n",
                    "  rank 7: RANK=7 LOCAL_RANK=1 GROUP_RANK=1 NODE_RANK=1 ROLE_RANK=7 CROSS_RANK=1\n"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
  CHECK_THAT(describe(2, false, 29501), ContainsSubstring("MASTER_PORT=29501\n"));
}

TEST_CASE("the plan over other machines names them, and leaves open what is measured there") {
  plan::Options options;
  options.size.gpus = 16;
  options.nodes.hosts = "a,b,c";
  options.nodes.spares = 1;
  options.output.verbosity = plan::Verbosity::kVerbose;
  auto plan = plan::make_plan(options, kMachine, "run-1");
  REQUIRE(plan.has_value());
  auto text = cli::dry_run(*plan, kMachine, {"train"});
  for (auto part :
       {"way      ssh to 3 hosts\n", "ranks    16 on 2 node(s), and 1 spare(s)\n", "  node 1: ranks 8 to 15 on b\n",
        "  MASTER_ADDR='<an address of node 0>'\n", "  OMP_NUM_THREADS='<cores there / LOCAL_WORLD_SIZE>'\n",
        "  GLOO_SOCKET_IFNAME='<the one with that node'\\''s address>'\n"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
  CHECK(text.find("cores ") == text.find("cores there"));
  plan->options.output.json = true;
  auto object = boost::json::parse(cli::dry_run(*plan, kMachine, {"train"})).as_object();
  CHECK(object.at("way").as_string() == "ssh to 3 hosts");
  CHECK(object.at("min_nodes").as_int64() == 2);
  CHECK(object.at("spares").as_int64() == 1);
  CHECK(object.at("nodes").at(1).at("hostname").as_string() == "b");
}

TEST_CASE("the plan fits a screen, and ends with what a reader looks for first") {
  auto text = describe(100, false, 29501, plan::Verbosity::kNormal);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24);
  CHECK_THAT(text, ContainsSubstring("  RANK=0 WORLD_SIZE=100 LOCAL_RANK=0"));
  CHECK_THAT(text, ContainsSubstring(" MASTER_PORT=29501 "));
  CHECK_THAT(text, ContainsSubstring("  and 9 more; --verbose has all\n"));
  CHECK_THAT(text, !ContainsSubstring("TORCHELASTIC"));
  CHECK(text.find("RANK=0") < text.find("command "));
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

}  // namespace dry_run_test
