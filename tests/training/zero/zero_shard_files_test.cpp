#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"
#include "training/zero/shard_files_folder.hpp"

namespace zero_shard_files_test {

using taas::test::problems;
using taas::test::ShardFilesFolder;
using taas::test::spawn_ranks;

namespace {

std::string problems_of(const char* scenario, int ranks) {
  return problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = ranks}));
}

std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 0; stream >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

TEST_CASE("Shards go from 2 to 8 to 4 ranks and to the other stage with the bits of the consolidated state") {
  const ShardFilesFolder folder;
  REQUIRE(problems_of("first_shard_world", 2) == "");
  REQUIRE(problems_of("second_shard_world", 8) == "");
  CHECK(problems_of("third_shard_world", 4) == "");
}

TEST_CASE("A rank that cannot write its shard is named on all ranks, and the former save stays") {
  const ShardFilesFolder folder;
  CHECK(problems_of("shard_write_fails", 3) == "");
}

TEST_CASE("Shards that are missing, cut off, damaged, mixed or of another model change nothing") {
  const ShardFilesFolder folder;
  CHECK(problems_of("shards_that_do_not_fit", 2) == "");
}

TEST_CASE("A rank that is killed in a save of shards leaves the last good one") {
  const int kills = std::getenv("TAAS_FULL") ? 100 : 20;
  constexpr int kRanks = 2, kKilled = 128 + 9;
  const ShardFilesFolder folder;
  std::int64_t least = 0;
  for (int number = 0; number < kills; ++number) {
    std::ofstream(folder.path / "kill") << number;
    const auto results = spawn_ranks(TAAS_RANK_PROGRAM, "killed_in_shards", {.world_size = kRanks});
    const auto victim = static_cast<std::size_t>(number % 2 == 0 ? 0 : kRanks - 1);
    INFO("kill " << number << ": " << results[0].output << results[1].output);
    CHECK(results[victim].exit_code == kKilled);
    CHECK(results[1 - victim].exit_code == 0);
    const auto epochs = numbers_in(results[0].output);
    REQUIRE_FALSE(epochs.empty());
    REQUIRE(epochs.front() >= least);
    least = epochs.back();
  }
  CHECK(least >= kills / 2);
  CHECK(problems_of("shards_after_kills", kRanks) == "");
}

}  // namespace zero_shard_files_test
