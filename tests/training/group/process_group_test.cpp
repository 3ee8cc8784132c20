#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace process_group_test {

using taas::test::Meeting;
using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Ranks meet at a store that rank 0 serves") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "movements", {.world_size = 3, .meeting = Meeting::kRankZero})) == "");
}

TEST_CASE("Ranks that do not come are named") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "missing_rank", {.world_size = 3, .started = 1})) == "");
}

TEST_CASE("A store that cannot be reached is named") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "no_store",
                             {.world_size = 2, .started = 1, .meeting = Meeting::kNowhere})) == "");
}

TEST_CASE("A rank that goes away is an error for those that wait for it") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "lost_rank", {.world_size = 3})) == "");
}

TEST_CASE("A rank that aborts is an error for all, also for those that wait for another one") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "aborted", {.world_size = 3})) == "");
}

TEST_CASE("A process joins again, after a group and beside one") {
  for (const auto meeting : {Meeting::kServed, Meeting::kRankZero}) {
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "second_init", {.world_size = 2, .meeting = meeting})) == "");
  }
}

TEST_CASE("A broken pipe is an error of the write, unless the program handles it") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "broken_pipe", {.world_size = 2})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "broken_pipe_handled", {.world_size = 2})) == "");
}

TEST_CASE("A group ends once, in order, on all its copies") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "shutdown", {.world_size = 2})) == "");
}

TEST_CASE("Ranks that ask for different backends are told so") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "different_wishes", {.world_size = 2})) == "");
}

}  // namespace process_group_test
