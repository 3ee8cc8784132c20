#include "parse/boundary.hpp"

#include <vector>

#include "catch.hpp"

namespace boundary_test {

using namespace taas::cli;

namespace {

using Words = std::vector<std::string>;

std::string error_of(const Words& arguments) {
  auto boundary = find_program(arguments);
  REQUIRE(boundary.has_error());
  return boundary.error().message;
}

}  // namespace

TEST_CASE("the program is the first argument that is neither an option nor a value of one") {
  struct Row {
    Words arguments;
    std::size_t options_end;
    std::size_t program_begin;
  };
  const Row rows[] = {
      {{}, 0, 0},
      {{"x"}, 0, 0},
      {{"-"}, 0, 0},
      {{""}, 0, 0},
      {{"--gpus", "4", "x", "--gpus", "5"}, 2, 2},
      {{"--gpus=4", "x"}, 1, 1},
      {{"--nproc_per_node", "4", "x"}, 2, 2},
      {{"-m", "x", "-t"}, 1, 1},
      {{"-t", "3", "x"}, 2, 2},
      {{"-t3", "x"}, 1, 1},
      {{"-t=3", "x"}, 1, 1},
      {{"--nproc", "4", "x"}, 2, 2},
      {{"--max_r=4", "x"}, 1, 1},
      {{"-qt", "3", "x"}, 2, 2},
      {{"-qmt3", "x"}, 1, 1},
      {{"--role", "--gpus", "x"}, 2, 2},
      {{"--role", "--", "x"}, 2, 2},
      {{"--role=", "x"}, 1, 1},
      {{"--gpus", "4", "--", "--weird", "-q"}, 2, 3},
      {{"--"}, 0, 1},
  };
  for (const auto& row : rows) {
    CAPTURE(row.arguments);
    auto boundary = find_program(row.arguments);
    REQUIRE(boundary.has_value());
    CHECK(boundary->options_end == row.options_end);
    CHECK(boundary->program_begin == row.program_begin);
  }
}

TEST_CASE("unknown options before the program are refused") {
  CHECK(error_of({"--nproc_per_nodes=4", "x"}) == "--nproc_per_nodes: no such option; did you mean --nproc-per-node?");
  CHECK(error_of({"--learning-rate", "x"}) == "--learning-rate: no such option; taas-run --help lists them");
  CHECK(error_of({"-z", "x"}) == "-z: no such option; taas-run --help lists them");
  CHECK(error_of({"-qz", "x"}) == "-qz: no such option; taas-run --help lists them");
  CHECK(error_of({"--=4"}) == "--: no such option; taas-run --help lists them");
  CHECK(error_of({"--nproc_per-node", "4", "x"}) == "--nproc_per-node: no such option; did you mean --nproc-per-node?");
}

TEST_CASE("a beginning that fits several options is refused with their names") {
  CHECK(error_of({"--rdzv-e=h", "--rdzv", "h", "x"}) ==
        "--rdzv: is short for more than one option: --rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf");
}

TEST_CASE("options of other launchers are refused with a way out") {
  CHECK_THAT(error_of({"--join", "h:1", "x"}), ContainsSubstring("--join is not needed: --rdzv-endpoint HOST:PORT"));
  CHECK_THAT(error_of({"--include", "a:0,1", "x"}), ContainsSubstring("--include is deepspeed's: --hosts"));
  CHECK_THAT(error_of({"--exclude=b", "x"}), ContainsSubstring("CUDA_VISIBLE_DEVICES"));
  CHECK_THAT(error_of({"--bind_cores_to_rank", "x"}), ContainsSubstring("--numa-binding exclusive"));
  CHECK_THAT(error_of({"--num_gpus=2", "x"}), ContainsSubstring("--nproc-per-node"));
  CHECK_THAT(error_of({"--num_processes", "2", "x"}), ContainsSubstring("accelerate's"));
  CHECK_THAT(error_of({"--logs-specs", "y", "x"}), ContainsSubstring("--logs-specs names a Python plug-in"));
}

TEST_CASE("a value that is missing") {
  CHECK(error_of({"--gpus"}) == "--gpus: a value is missing");
  CHECK(error_of({"-q", "-t"}) == "-t: a value is missing");
}

}  // namespace boundary_test
