#include "plan/environment/data_environment.hpp"

#include <algorithm>

#include "catch.hpp"

namespace data_environment_test {

using namespace taas;
using namespace taas::plan;

namespace {

LaunchSettings settings_of(const std::string& program) {
  LaunchSettings settings;
  settings.run_id = "run";
  settings.options.program.program = program;
  return settings;
}

std::string value_of(const std::vector<Variable>& variables, const std::string& name) {
  auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& one) { return one.first == name; });
  return found == variables.end() ? "-" : found->second;
}

const DataWorkerPlace kPlace{3, "3,4", "/private/plan.json", "/private/events"};

}  // namespace

TEST_CASE("a data worker learns its place, and nothing of a process group") {
  auto variables = data_worker_environment(settings_of("train"), Machine{"here", 0, 4, {}}, kPlace);
  CHECK(value_of(variables, "TAAS_ROLE") == "data-worker");
  CHECK(value_of(variables, "TAAS_DATA_WORKER") == "3");
  CHECK(value_of(variables, "TAAS_DATA_LISTEN") == "3,4");
  CHECK(value_of(variables, "TAAS_DATA_PLAN") == "/private/plan.json");
  CHECK(value_of(variables, "TAAS_EVENTS") == "/private/events");
  CHECK(value_of(variables, "TAAS_RUN_ID") == "run");
  CHECK(value_of(variables, "PYTHONHASHSEED") == "0");
  for (auto name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "PYTHONPATH"}) CHECK(value_of(variables, name) == "-");
}

TEST_CASE("what the user says of memory, threads and hashes counts") {
  Machine machine{"here", 0, 4, {{"OMP_NUM_THREADS", "4"}, {"PYTHONHASHSEED", "7"}}};
  auto variables = data_worker_environment(settings_of("train"), machine, kPlace);
  CHECK(value_of(variables, "OMP_NUM_THREADS") == "-");
  CHECK(value_of(variables, "PYTHONHASHSEED") == "-");
  CHECK(value_of(variables, "MALLOC_MMAP_MAX_") == "0");
}

TEST_CASE("Python programs find the package behind the user's own") {
  Machine machine{"here", 0, 4, {{"PYTHONPATH", "/mine"}}, "/taas/python"};
  auto variables = data_worker_environment(settings_of("train.py"), machine, kPlace);
  CHECK(value_of(variables, "PYTHONPATH") == "/mine:/taas/python");
  machine.environment["PYTHONPATH"] = "";
  CHECK(python_path(settings_of("train.py").options.program, machine) == "/taas/python");
  CHECK(python_path(settings_of("train").options.program, machine).empty());
  machine.python_packages = "";
  CHECK(python_path(settings_of("train.py").options.program, machine).empty());
}

TEST_CASE("ranks of all programs find what torch loads in them behind everything else, and data workers do not") {
  Machine machine{"here", 0, 4, {{"PYTHONPATH", "/mine"}}, "/taas/python", {}, "/taas/python/rank"};
  auto path = [&](const char* program) {
    return value_of(rank_environment(settings_of(program), machine, {}, Generation{0}, {}), "PYTHONPATH");
  };
  CHECK(path("train.py") == "/mine:/taas/python:/taas/python/rank");
  CHECK(path("train") == "/mine:/taas/python/rank");
  machine.environment.clear();
  CHECK(path("train") == "/taas/python/rank");
  CHECK(value_of(data_worker_environment(settings_of("train.py"), machine, kPlace), "PYTHONPATH") == "/taas/python");
}

TEST_CASE("a launcher within a rank does not pass on what the rank was told") {
  std::map<std::string, std::string> environment{
      {"TAAS_ROLE", "rank"}, {"TAAS_DATA_PLAN", "x"}, {"TAAS_DATA_LISTEN", "3,4"}, {"TAAS_DATA_WORKER", "1"},
      {"TAAS_EVENTS", "y"},  {"TAAS_SPLIT", "1"},     {"TAAS_TOKEN", "z"}};
  forget_data_delivery(environment);
  CHECK(environment == std::map<std::string, std::string>{{"TAAS_TOKEN", "z"}});
}

TEST_CASE("ranks and data workers hear of --split, with CPU machines or without") {
  auto settings = settings_of("train.py");
  Machine machine{"here", 0, 4, {}, "/taas/python"};
  CHECK(value_of(rank_environment(settings, machine, {}, Generation{0}, {}), "TAAS_SPLIT") == "-");
  settings.options.data.split = true;
  CHECK(value_of(rank_environment(settings, machine, {}, Generation{0}, {}), "TAAS_SPLIT") == "1");
  CHECK(value_of(data_worker_environment(settings, machine, {}), "TAAS_SPLIT") == "1");
}

TEST_CASE("ranks hear of data delivery when there is any") {
  RunAddresses addresses;
  Machine machine{"here", 0, 4, {}, "/taas/python"};
  auto plain = rank_environment(settings_of("train.py"), machine, {}, Generation{0}, addresses);
  for (auto name : {"TAAS_ROLE", "TAAS_DATA_PLAN", "TAAS_EVENTS", "PYTHONHASHSEED"})
    CHECK(value_of(plain, name) == "-");
  CHECK(value_of(plain, "PYTHONPATH") == "/taas/python");
  addresses.data_plan = "/private/plan.json";
  addresses.events = "/private/events";
  auto with = rank_environment(settings_of("train"), machine, {}, Generation{0}, addresses);
  CHECK(value_of(with, "TAAS_ROLE") == "rank");
  CHECK(value_of(with, "TAAS_DATA_PLAN") == "/private/plan.json");
  CHECK(value_of(with, "TAAS_EVENTS") == "/private/events");
  CHECK(value_of(with, "PYTHONHASHSEED") == "0");
  CHECK(value_of(with, "PYTHONPATH") == "-");
}

}  // namespace data_environment_test
