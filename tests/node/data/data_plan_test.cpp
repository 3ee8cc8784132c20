#include "node/data/data_plan.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "base/files.hpp"
#include "catch.hpp"
#include "held_path.hpp"
#include "node/process/private_folder.hpp"

namespace data_plan_test {

using namespace taas;
using namespace taas::node;

namespace {

DataPlan plan_of(int workers) {
  DataPlan plan;
  plan.run_id = "run";
  for (int i = 0; i < 4; ++i) plan.key += "0123456789abcdef";
  plan.options.cpus = 2;
  plan.options.units = 10;
  plan.options.plain = true;
  plan.options.compression = plan::Compression::kZstd;
  plan.options.on_error = plan::OnDataError::kSkip;
  plan.options.loader = "data:train";
  plan.world_size = 4;
  for (int i = 0; i < workers; ++i) plan.workers.push_back({"worker " + std::to_string(i), "127.0.0.1", 70, "/x/0"});
  return plan;
}

}  // namespace

TEST_CASE("the plan's form") {
  auto plan = plan_of(0);
  plan.workers = {{"data-worker 0", "127.0.0.1", 70, "/x/0"}, {"gone", "", 0, ""}};
  CHECK(print_data_plan(plan) + "\n" == read_file(TAAS_CONTRACT "/plan.json").value());
}

TEST_CASE("the file is the owner's, and is replaced whole") {
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  auto path = folder->path() + "/plan.json";
  REQUIRE(write_data_plan(held_path(path), plan_of(1)).has_value());
  struct stat first {};
  REQUIRE(::stat(path.c_str(), &first) == 0);
  CHECK((first.st_mode & 0777) == 0600);
  REQUIRE(write_data_plan(held_path(path), plan_of(2)).has_value());
  struct stat second {};
  REQUIRE(::stat(path.c_str(), &second) == 0);
  CHECK(first.st_ino != second.st_ino);
  CHECK(boost::json::parse(read_file(path).value()).at("workers").as_array().size() == 2);
  CHECK_FALSE(write_data_plan({folder->held(), "none/plan.json"}, plan_of(1)).has_value());
}

TEST_CASE("a link in the place of the plan, or of what it is written to first, costs no other file") {
  auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  const auto victim = folder->path() + "/victim", path = folder->path() + "/plan.json";
  REQUIRE(write_all(Fd(::open(victim.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), "weeks of work").has_value());
  REQUIRE(::symlink(victim.c_str(), path.c_str()) == 0);
  REQUIRE(::symlink(victim.c_str(), (path + ".new").c_str()) == 0);
  REQUIRE(write_data_plan({folder->held(), "plan.json"}, plan_of(1)).has_value());
  CHECK(read_file(victim).value() == "weeks of work");
  CHECK(boost::json::parse(read_file(path).value()).at("workers").as_array().size() == 1);
}

}  // namespace data_plan_test
