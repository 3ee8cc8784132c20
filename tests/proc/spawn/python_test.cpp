#include "proc/spawn/python.hpp"

#include <sys/stat.h>

#include <fstream>

#include "proc/processes.hpp"

namespace python_test {

using namespace taas;
using namespace taas::test;

namespace {

std::string make_executable(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  return path;
}

}  // namespace

TEST_CASE("a program is found in the first folder that has it as an executable file") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a/tool");  // a folder of that name
  std::filesystem::create_directories(folder / "b");
  std::ofstream(folder / "b/tool") << "not executable";
  auto expected = make_executable(folder / "c/tool");
  make_executable(folder / "d/tool");
  auto path = folder / "a" + ":" + folder / "b" + ":" + folder / "c" + ":" + folder / "d";
  CHECK(find_in_path("tool", path) == expected);
  CHECK(find_in_path("other", path).empty());
  CHECK(find_in_path("", path).empty());
  CHECK(find_in_path(expected, "") == expected);
  CHECK(find_in_path(folder / "b/tool", "").empty());
}

TEST_CASE("variables are found by their whole name") {
  std::vector<std::string> environment = {"AB=1", "A=2", "EMPTY="};
  CHECK(find_variable(environment, "A") == "2");
  CHECK(find_variable(environment, "EMPTY") == "");
  CHECK_FALSE(find_variable(environment, "B").has_value());
}

TEST_CASE("the interpreter: PYTHON_EXEC, python3, python, whatever environment is said to be active") {
  TemporaryFolder folder;
  auto plain = make_executable(folder / "old/python");
  std::vector<std::string> environment = {"PATH=" + folder / "old"};
  CHECK(find_python(environment) == plain);
  auto third = make_executable(folder / "new/python3");
  environment = {"PATH=" + folder / "old" + ":" + folder / "new"};
  CHECK(find_python(environment) == third);
  auto active = make_executable(folder / "venv/bin/python");
  environment.push_back("VIRTUAL_ENV=" + folder / "venv");
  CHECK(find_python(environment) == third);
  environment.front() = "PATH=" + folder / "venv/bin" + ":" + folder / "old";
  CHECK(find_python(environment) == active);
  environment.push_back("PYTHON_EXEC=python");
  CHECK(find_python(environment) == active);
  environment.back() = "PYTHON_EXEC=/no/such/python";
  CHECK(find_python(environment).empty());
  environment.back() = "PYTHON_EXEC=";
  CHECK(find_python(environment) == active);
}

TEST_CASE("an environment that is not the interpreter's is told") {
  TemporaryFolder folder;
  auto python = make_executable(folder / "new/bin/python");
  make_executable(folder / "old/bin/python");
  std::vector<std::string> environment{"PATH=" + folder / "new/bin"};
  CHECK(other_active_environment(environment, python).empty());
  environment.push_back("VIRTUAL_ENV=" + folder / "old");
  CHECK(other_active_environment(environment, python) == "VIRTUAL_ENV names " + folder / "old" +
                                                             ", but the program runs with " + python +
                                                             ": PATH and PYTHON_EXEC choose the interpreter");
  environment.push_back("CONDA_PREFIX=" + folder / "new");
  CHECK(other_active_environment(environment, python).empty());
  environment = {"CONDA_PREFIX=/gone"};
  CHECK(other_active_environment(environment, python).starts_with("CONDA_PREFIX names /gone"));
  environment.push_back("PYTHON_EXEC=" + python);
  CHECK(other_active_environment(environment, python).empty());
}

TEST_CASE("a launcher inside of an environment takes that one's interpreter, unless PATH has its folder") {
  TemporaryFolder folder;
  auto plain = make_executable(folder / "usr/python3");
  auto beside = make_executable(folder / "env/bin/python");
  std::vector<std::string> environment = {"PATH=" + folder / "usr"};
  CHECK(find_python(environment, folder / "env/bin") == plain);  // a folder with a Python in it is no environment yet
  std::ofstream(folder / "env/pyvenv.cfg") << "home = /usr/bin\n";
  CHECK(find_python(environment, folder / "env/bin") == beside);
  std::filesystem::create_directories(folder / "conda/conda-meta");
  auto conda = make_executable(folder / "conda/bin/python");
  CHECK(find_python(environment, folder / "conda/bin") == conda);
  environment = {"PATH=" + folder / "usr" + ":" + folder / "env/bin"};
  CHECK(find_python(environment, folder / "env/bin") == plain);
}

}  // namespace python_test
