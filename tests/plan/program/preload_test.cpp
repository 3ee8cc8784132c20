#include "plan/program/preload.hpp"

#include "catch.hpp"

namespace preload_test {

namespace {

using namespace taas::plan;
using List = std::vector<std::string>;

PreloadChoice choose(const std::string& preload, const std::string& text, int ranks = 8, int restarts = 0,
                     const List& words = {"python", "-u", "x.py"}) {
  Options options;
  options.program.preload = preload;
  options.supervision.max_restarts = restarts;
  return choose_preload(options, words, ranks, [&](const std::string& path) -> std::optional<std::string> {
    if (path != "x.py") return std::nullopt;
    return text;
  });
}

TEST_CASE("by itself: Python programs that import torch, where it is worth it") {
  auto choice = choose("auto", "import torch");
  CHECK(choice.modules == List{"torch"});
  CHECK(choice.options == 2);
  CHECK(choose("auto", "import torch", 1).modules.empty());
  CHECK(choose("auto", "import torch", 1, 1).modules == List{"torch"});
  CHECK(choose("auto", "import os").modules.empty());
  CHECK(choose("auto", "", 8, 0, {"python", "-m", "installed.train"}).modules == List{"torch"});
  CHECK(choose("auto", "", 8, 0, {"/bin/true"}).modules.empty());
  CHECK_FALSE(choose("auto", "", 8, 0, {"/bin/true"}).is_news);
}

TEST_CASE("as the user says") {
  CHECK(choose("none", "import torch").modules.empty());
  CHECK_FALSE(choose("none", "import torch").is_news);
  CHECK(choose("torch,my.data", "import os", 1).modules == List{"torch", "my.data"});
  CHECK(choose("torch", "", 8, 0, {"/bin/true"}).is_news);
}

TEST_CASE("not with a program that sets what torch reads when it is imported, and that is news") {
  auto choice = choose("auto", "import os\nos.environ['OMP_NUM_THREADS'] = '4'\nimport torch");
  CHECK(choice.modules.empty());
  CHECK(choice.is_news);
  CHECK(choice.why == "the program sets OMP_NUM_THREADS itself, which libraries read when they are imported");
}

TEST_CASE(
    "what libraries read when they are loaded is known, what Python modules read is seen when they are imported") {
  auto set = [](const std::string& name) {
    return choose("auto", "import os\nos.environ['" + name + "'] = '4'\nimport torch");
  };
  for (auto name : {"MKL_NUM_THREADS", "KMP_BLOCKTIME", "TORCH_LOGS", "MKLDNN_VERBOSE", "DNNL_VERBOSE",
                    "NPY_DISABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY", "TQDM_DISABLE", "TF_CPP_MIN_LOG_LEVEL"}) {
    CHECK(set(name).modules.empty());
  }
  for (auto name :
       {"CUDA_VISIBLE_DEVICES", "TORCH_HOME", "TORCH_NCCL_BLOCKING_WAIT", "HF_HOME", "TORCHINDUCTOR_FX_GRAPH_CACHE"}) {
    CHECK(set(name).modules == List{"torch"});
    CHECK(set(name).set_by_program == List{name});
  }
}

TEST_CASE("nor with one that sets what nobody knows, or whose packages have to come before torch") {
  auto unknown = choose("auto", "import os, torch\nos.environ[name] = value");
  CHECK((unknown.modules.empty() && unknown.is_news));
  auto first = choose("torch", "import comet_ml\nimport torch");
  CHECK(first.why == "comet_ml has to be imported before torch");
  CHECK(choose("auto", "sys.modules['tqdm'] = None\nimport torch").modules.empty());
}

TEST_CASE("variables that a rank has to be started with") {
  CHECK(read_at_start({"RANK", "LD_PRELOAD", "MALLOC_ARENA_MAX", "KMP_AFFINITY", "MY_MODE", "TORCH_NCCL_TRACE"}) ==
        List{"LD_PRELOAD", "MALLOC_ARENA_MAX", "KMP_AFFINITY"});
}

TEST_CASE("values of --preload") {
  for (auto value : {"auto", "none", "torch", "torch,torch.distributed,_private1"})
    CHECK(check_preload(value).has_value());
  for (auto value : {"", "torch,", ",", "a b", ".a", "a.", "x-y"}) CHECK(check_preload(value).has_error());
  CHECK(check_preload("a-b").error().message ==
        "\"a-b\" is not a module name: auto, none, or names like torch,torch.distributed");
}

}  // namespace

}  // namespace preload_test
