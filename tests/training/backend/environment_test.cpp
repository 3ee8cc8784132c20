#include "training/backend/environment.hpp"

#include <map>

#include "catch.hpp"
#include "taas/error.hpp"

namespace environment_test {

using taas::ConfigError;
using taas::Environment;

namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return taas::read_environment([&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables launched(const Variables& changes = {}) {
  Variables variables{{"RANK", "9"},
                      {"WORLD_SIZE", "16"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "8"},
                      {"MASTER_ADDR", "10.0.0.1"},
                      {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Without a launcher there is one process") {
  auto environment = read({});
  CHECK(environment.rank == 0);
  CHECK(environment.world_size == 1);
  CHECK(environment.local_world_size == 1);
  CHECK(environment.devices_per_rank == 1);
}

TEST_CASE("The launcher's variables are taken as they are") {
  auto environment = read(launched());
  CHECK(environment.rank == 9);
  CHECK(environment.world_size == 16);
  CHECK(environment.local_rank == 1);
  CHECK(environment.local_world_size == 8);
  CHECK(read(launched({{"TAAS_DEVICES_PER_RANK", "2"}})).devices_per_rank == 2);
  CHECK(environment.master_address == "10.0.0.1");
  CHECK(environment.master_port == 29500);
  CHECK_FALSE(environment.launcher_has_store);
  CHECK(environment.restart_count == 0);

  environment = read(launched({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  CHECK(environment.launcher_has_store);
  CHECK(environment.restart_count == 2);
}

TEST_CASE("One rank needs no meeting place") {
  auto environment = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK(environment.world_size == 1);
  CHECK(environment.master_address.empty());
}

TEST_CASE("Local places default to the global ones") {
  auto environment = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1"}});
  CHECK(environment.local_rank == 1);
  CHECK(environment.local_world_size == 2);
}

TEST_CASE("A refusal names the variable and its value") {
  CHECK(refusal(launched({{"RANK", "16"}})) == "RANK=16 must be below WORLD_SIZE=16");
  CHECK_THAT(refusal(launched({{"RANK", "-1"}})), ContainsSubstring("RANK=-1"));
  CHECK_THAT(refusal(launched({{"RANK", "three"}})), ContainsSubstring("RANK=three is not a whole number"));
  CHECK_THAT(refusal(launched({{"WORLD_SIZE", "0"}})), ContainsSubstring("WORLD_SIZE=0"));
  CHECK_THAT(refusal(launched({{"WORLD_SIZE", "99999999999"}})), ContainsSubstring("WORLD_SIZE=99999999999"));
  CHECK_THAT(refusal(launched({{"LOCAL_RANK", "8"}})),
             ContainsSubstring("LOCAL_RANK=8 must be below LOCAL_WORLD_SIZE=8"));
  CHECK_THAT(refusal(launched({{"MASTER_PORT", "70000"}})), ContainsSubstring("MASTER_PORT=70000"));
  CHECK_THAT(refusal(launched({{"MASTER_PORT", "29500x"}})), ContainsSubstring("MASTER_PORT=29500x"));
  CHECK_THAT(refusal({{"RANK", "0"}}), ContainsSubstring("WORLD_SIZE is not set"));
  CHECK_THAT(refusal({{"WORLD_SIZE", "2"}}), ContainsSubstring("RANK is not set"));
  CHECK_THAT(refusal(launched({{"MASTER_ADDR", ""}})), ContainsSubstring("MASTER_ADDR is not set"));
}

}  // namespace environment_test
