#include "plan/program/python_sources.hpp"

#include <map>

#include "catch.hpp"

namespace python_sources_test {

namespace {

using namespace taas::plan;

ProgramText read(const std::vector<std::string>& words, std::map<std::string, std::string> files) {
  auto command = parse_python_command(words);
  REQUIRE(command);
  return read_program(*command, [&](const std::string& path) -> std::optional<std::string> {
    auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

ProgramText read_script(const std::string& text) { return read({"python", "x.py"}, {{"x.py", text}}); }

TEST_CASE("a program that imports torch, or what imports it, trains") {
  for (auto text : {"import torch", "import os, torch.nn as nn", "def f():\n    from torch import nn",
                    "from lightning.pytorch import x", "\timport transformers\r\n", "import torch;import os",
                    "if x: pass\nimport torch  # why"}) {
    CHECK(read_script(text).trains);
  }
  for (auto text : {"", "import os", "# import torch", "print('import torch')", "import torchless", "import my.torch",
                    "from . import torch_free", "import jax, taas\ntaas.jax_initialize()"}) {
    CHECK_FALSE(read_script(text).trains);
  }
}

TEST_CASE("a program that imports Ray Train is told from others that use Ray") {
  for (const auto* line : {"import ray.train", "import ray.train.torch as rt", "from ray import train, data",
                           "from ray.train.torch import TorchTrainer"}) {
    CHECK(read_script(line).trains_by_ray);
  }
  for (const auto* line : {"import ray", "from ray import data", "import ray.trainer", "from array import train"}) {
    CHECK_FALSE(read_script(line).trains_by_ray);
  }
}

TEST_CASE("a program that imports accelerate is told from others") {
  CHECK(read_script("from accelerate import Accelerator").accelerates);
  CHECK_FALSE(read_script("import torch, accelerated").accelerates);
}

TEST_CASE("modules beside the program are read as well") {
  std::map<std::string, std::string> files{{"app/x.py", "from model import Net\nimport tools.a, tools.b"},
                                           {"app/tools/__init__.py", ""},
                                           {"app/tools/b.py", "from . import deep\nfrom ..absent import y"},
                                           {"app/tools/deep.py", "import torch"}};
  CHECK(read({"python", "app/x.py"}, files).trains);
  files["app/tools/deep.py"] = "import x";
  CHECK_FALSE(read({"python", "app/x.py"}, files).trains);
  CHECK(read({"python", "-c", "import app_torch"}, {{"./app_torch.py", "import torch"}}).trains);
}

TEST_CASE("modules and folders as programs") {
  CHECK(read({"python", "-m", "a.b"}, {{"./a/b.py", "import torch"}}).trains);
  CHECK(read({"python", "-m", "a"}, {{"./a/__main__.py", "from .c import d"}, {"./a/c.py", "import torch"}}).trains);
  CHECK(read({"python", "dir"}, {{"dir/__main__.py", "import c"}, {"dir/c.py", "import torch"}}).trains);
  CHECK_FALSE(read({"python", "-m", "installed"}, {}).known);
}

TEST_CASE("variables that the program or a module beside it sets") {
  using List = std::vector<std::string>;
  CHECK(read_script("os.environ['A'] = os.environ['B'] = '1'\nos.environ['A'] = '2'").variables == List{"A", "B"});
  CHECK(read({"python", "x.py"}, {{"x.py", "import y"}, {"./y.py", "os.environ['A'] = '1'"}}).variables == List{"A"});
}

TEST_CASE("a notebook's cell is a program in a folder, of which only the variables are known") {
  auto cell = read({"python", "-m", "taas.notebook.rank", "/cells/1"},
                   {{"/cells/1/cell.py", "import os\nos.environ['A'] = '1'\nimport torch"}});
  CHECK(cell.variables == std::vector<std::string>{"A"});
  CHECK_FALSE(cell.known);
}

}  // namespace

}  // namespace python_sources_test
