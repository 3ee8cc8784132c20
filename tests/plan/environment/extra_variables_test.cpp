#include "plan/environment/extra_variables.hpp"

#include <algorithm>

#include "catch.hpp"
#include "plan/launch_plan.hpp"

namespace extra_variables_test {

using namespace taas;
using namespace taas::plan;
using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("variables for some ranks are read as a shell would") {
  CHECK(read_extra_variable("A=b=c").value() == std::pair<std::string, std::string>("A", "b=c"));
  CHECK(read_extra_variable("_A1=").value() == std::pair<std::string, std::string>("_A1", ""));
  for (auto text : {"", "A", "=b", "1A=b", "A B=c", "A-B=c"}) {
    CHECK(read_extra_variable(text).error().message == "not NAME=value, such as WANDB_MODE=disabled");
  }
}

TEST_CASE("rank 0 and the others have variables of their own") {
  FrameworkOptions options;
  options.rank0_env = {"A=1", "B=2"};
  options.other_ranks_env = {"A=3"};
  CHECK(extra_variables(options, Rank{0}) == Pairs{{"A", "1"}, {"B", "2"}});
  CHECK(extra_variables(options, Rank{1}) == Pairs{{"A", "3"}});
  CHECK(extra_variables({}, Rank{0}).empty());
  options.env = {"C=4", "A=5"};
  CHECK(extra_variables(options, Rank{0}) == Pairs{{"C", "4"}, {"A", "5"}, {"A", "1"}, {"B", "2"}});
}

TEST_CASE("what the launcher always sets is its own, and its defaults give way") {
  Machine machine{"here", 0, 8, {}};
  auto plan = make_plan({}, machine, "run-1").value();
  RunAddresses addresses{"127.0.0.1", 1, true, "/out", "/error", "", "/stop"};
  auto place = plan.ranks.front();
  auto bare = rank_environment(launch_settings(plan, machine, ""), machine, place, {}, addresses);
  Machine user = machine;
  for (const auto& [name, value] : bare) user.environment[name] = "mine";
  auto over = rank_environment(launch_settings(plan, user, ""), user, place, {}, addresses);
  for (const auto& [name, value] : bare) {
    bool always = std::find(over.begin(), over.end(), Variable(name, value)) != over.end();
    CAPTURE(name);
    CHECK(read_extra_variable(name + "=x").has_error() == always);
  }
}

TEST_CASE("a variable for a rank is set once, in place of the launcher's default") {
  Options options;
  options.frameworks.rank0_env = {"OMP_NUM_THREADS=3", "WANDB_RUN_GROUP=mine"};
  Machine machine{"here", 0, 8, {}};
  auto plan = make_plan(options, machine, "run-1").value();
  auto variables = rank_environment(launch_settings(plan, machine, ""), machine, plan.ranks.front(), {}, {});
  auto count = [&](const char* name) {
    return std::count_if(variables.begin(), variables.end(), [&](const auto& v) { return v.first == name; });
  };
  CHECK(count("OMP_NUM_THREADS") == 1);
  CHECK(std::find(variables.begin(), variables.end(), Variable("OMP_NUM_THREADS", "3")) != variables.end());
  CHECK(count("WANDB_RUN_GROUP") == 1);
}

}  // namespace extra_variables_test
