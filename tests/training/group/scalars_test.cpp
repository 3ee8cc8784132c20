#include "taas/scalars.hpp"

#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

namespace scalars_test {

/// The variables are read once, so that there is one case.
TEST_CASE("scalars are lines of JSON in the run's output") {
  const auto folder = std::filesystem::temp_directory_path() / ("taas-scalars-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  ::setenv("TAAS_OUTPUT_DIR", folder.c_str(), 1);
  ::setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
  ::setenv("RANK", "0", 1);
  taas::log_scalar("loss of \"a\"", 0.1, 7);
  taas::log_scalar("loss", 1e-12, 8);
  taas::log_scalar("loss", std::numeric_limits<double>::quiet_NaN(), 9);
  taas::log_scalar("loss", -std::numeric_limits<double>::infinity(), 10);
  std::ifstream file(folder / "scalars-3.jsonl");
  std::vector<boost::json::object> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(boost::json::parse(line).as_object());
  std::filesystem::remove_all(folder);
  for (const char* name : {"TAAS_OUTPUT_DIR", "TORCHELASTIC_RESTART_COUNT", "RANK"}) ::unsetenv(name);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].at("name") == "loss of \"a\"");
  CHECK(lines[0].at("value") == 0.1);
  CHECK(lines[0].at("step") == 7);
  CHECK(lines[0].at("wall_time").as_double() > 1.7e9);
  CHECK(lines[1].at("value") == 1e-12);
  CHECK(lines[2].at("value") == "NaN");
  CHECK(lines[3].at("value") == "-Infinity");
}

}  // namespace scalars_test
