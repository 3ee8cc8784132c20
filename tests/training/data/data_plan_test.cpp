#include "training/data/data_plan.hpp"

#include "catch.hpp"
#include "taas/error.hpp"

namespace training_data_plan_test {

using namespace taas;

TEST_CASE("the plan as the launcher writes it") {
  const auto plan = read_data_plan(TAAS_CONTRACT "/plan.json");
  CHECK(plan.run_id == "run");
  CHECK(plan.key.substr(0, 8) == "\x01\x23\x45\x67\x89\xab\xcd\xef");
  CHECK(plan.key.size() == 32);
  CHECK(plan.encryption == data::Encryption::kPlain);
  CHECK(plan.compression == data::Compression::kZstd);
  CHECK(plan.buffer_bytes == 1 << 30);
  CHECK(plan.samples_wanted() == 3);  // 10 units of 4 ranks
  CHECK(plan.skips_errors);
  CHECK(plan.loaders == std::vector<std::string>{"data:train"});
  CHECK(plan.worker_at(3) == 1);
  REQUIRE(plan.workers.size() == 2);
  CHECK(plan.workers[0].name == "data-worker 0");
  CHECK(plan.workers[0].address == "127.0.0.1");
  CHECK(plan.workers[0].port == 70);
  CHECK(plan.workers[0].unix_path == "/x/0");
  CHECK(plan.workers[1].address.empty());
}

TEST_CASE("a plan that is not there, or no plan, is an error that names the file") {
  CHECK_THROWS_AS(read_data_plan("/nowhere/plan.json"), ConfigError);
  CHECK_THROWS_WITH(read_data_plan(TAAS_CONTRACT "/reports.jsonl"), ContainsSubstring("reports.jsonl"));
}

}  // namespace training_data_plan_test
