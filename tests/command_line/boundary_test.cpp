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
  CHECK(error_of({"--learning-rate", "x"}) == "--learning-rate: no such option; taas-run --help all lists them");
  CHECK(error_of({"-z", "x"}) == "-z: no such option; taas-run --help all lists them");
  CHECK(error_of({"-qz", "x"}) == "-qz: no such option; taas-run --help all lists them");
  CHECK(error_of({"--=4"}) == "--: no such option; taas-run --help all lists them");
  CHECK(error_of({"--nproc_per-node", "4", "x"}) == "--nproc_per-node: no such option; did you mean --nproc-per-node?");
}

TEST_CASE("an option of the program in front of it is told its place") {
  CHECK(error_of({"--lr", "0.1", "train.py"}) ==
        "--lr: no such option of taas-run; options of train.py stand behind it: train.py --lr 0.1");
  CHECK(error_of({"--gpus", "2", "--lr=0.1", "-m", "my.module", "x"}) ==
        "--lr: no such option of taas-run; options of my.module stand behind it: -m my.module --lr=0.1");
  CHECK(error_of({"-lr", "0.1", "--gpus", "2", "train"}) ==
        "-lr: no such option of taas-run; options of train stand behind it: train -lr 0.1");
  CHECK(error_of({"--amp", "a b.py"}) ==
        "--amp: no such option of taas-run; options of a b.py stand behind it: 'a b.py' --amp");
  CHECK(error_of({"--gpusx", "2", "-m", "taas.notebook.rank"}) == "--gpusx: no such option; did you mean --gpus?");
  CHECK(error_of({"--seed", "1", "train.py"}) ==
        "--seed: no such option of taas-run; did you mean --speed? options of "
        "train.py stand behind it: train.py --seed 1");
}

TEST_CASE("options of mpirun and srun are told their names here") {
  for (const Words& words : {Words{"-n", "2", "x"},
                             {"-n2", "x"},
                             {"-n=2", "x"},
                             {"-np", "2", "x.py"},
                             {"-np2", "x"},
                             {"--ntasks", "2", "x"},
                             {"--ntasks=2", "x"}}) {
    CAPTURE(words);
    CHECK_THAT(error_of(words), ContainsSubstring(": --gpus N is the number of ranks in all"));
  }
  CHECK(error_of({"-ppn", "2", "x"}) == "-ppn is mpirun's: use --nproc-per-node N");
  CHECK(error_of({"-N", "2", "x"}) == "-N is srun's: use --nnodes N");
  CHECK(error_of({"-H", "a,b", "x"}) == "-H is mpirun's: use --hosts a:8,b:8");
  CHECK(error_of({"-hostfile", "h", "x"}) == "-hostfile: no such option; did you mean --hostfile?");
  CHECK(find_program(Words{"--np", "2", "x"}).has_value());  // torchrun takes it for --nproc-per-node
}

TEST_CASE("what to do stands at an error's end, and apart") {
  auto fix_of = [](const Words& words) { return find_program(words).error().fix; };
  CHECK(fix_of({"--gpu", "8", "x"}) == "did you mean --gpus?");
  CHECK(fix_of({"-N", "2", "x"}) == "use --nnodes N");
  CHECK(fix_of({"--lr", "1", "x.py"}) == "options of x.py stand behind it: x.py --lr 1");
}

TEST_CASE("the program by its looks, where nobody can say what an option's value is") {
  CHECK(program_by_looks(Words{"--lr", "0.1", "a/train.py", "b.py"}) == 2);
  CHECK(program_by_looks(Words{"--lr", "-m", "mine"}) == 2);
  CHECK(program_by_looks(Words{"train"}) == 0);
  CHECK_FALSE(program_by_looks(Words{"--lr", "0.1", "program", "--x.py"}).has_value());
  CHECK_FALSE(program_by_looks(Words{}).has_value());
}

TEST_CASE("a beginning that fits several options is refused with their names") {
  CHECK(error_of({"--rdzv-e=h", "--rdzv", "h", "x"}) ==
        "--rdzv: is short for more than one option: --rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf");
  CHECK(error_of({"--gpu", "8", "x"}) ==
        "--gpu: is short for more than one option: --gpus, --gpus-per-node; did you mean --gpus?");
}

TEST_CASE("options of other launchers are refused with what is meant") {
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
