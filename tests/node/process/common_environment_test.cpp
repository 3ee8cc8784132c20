#include "node/process/common_environment.hpp"

#include "catch.hpp"

namespace common_environment_test {

namespace {

using taas::node::common_environment;
using List = std::vector<std::string>;

TEST_CASE("what ranks have in common is what neither differs between them nor changes with the generation") {
  List first{"HOME=/h", "RANK=0", "OMP_NUM_THREADS=2", "MASTER_PORT=1", "MODE=a", "PYTHONHASHSEED=0"};
  List second{"HOME=/h", "RANK=1", "OMP_NUM_THREADS=2", "MASTER_PORT=1", "MODE=b", "PYTHONHASHSEED=0"};
  List set_by_launcher{"RANK", "OMP_NUM_THREADS", "MASTER_PORT", "PYTHONPATH", "PYTHONHASHSEED"};
  auto common = common_environment({first, second}, set_by_launcher);
  CHECK(common.variables == List{"HOME=/h", "OMP_NUM_THREADS=2", "PYTHONHASHSEED=0"});
  CHECK(common.per_rank == List{"MASTER_PORT", "MODE", "RANK"});
}

TEST_CASE("a variable that only one rank has is not common") {
  CHECK(common_environment({{"A=1", "B=2"}, {"A=1"}}, {}).variables == List{"A=1"});
  CHECK(common_environment({{"A=1"}, {"A=1", "B=2"}}, {}).per_rank == List{"B"});
  CHECK(common_environment({}, {}).variables.empty());
}

/// To look every variable up in all others' would take minutes.
TEST_CASE("thousands of ranks are compared with the first one") {
  std::vector<List> environments;
  for (int rank = 0; rank < 4096; ++rank) {
    environments.push_back({"RANK=" + std::to_string(rank)});
    for (int i = 0; i < 50; ++i) environments.back().push_back("VARIABLE_" + std::to_string(i) + "=value");
  }
  environments.back().back() = "VARIABLE_49=other";
  auto common = common_environment(environments, {});
  CHECK(common.variables.size() == 49);
  CHECK(common.per_rank == List{"RANK", "VARIABLE_49"});
}

}  // namespace

}  // namespace common_environment_test
