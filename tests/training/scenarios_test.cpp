// What ranks promise together: each scenario ends without an error on all of them.
#include <string>
#include <vector>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace scenarios_test {

namespace {

using taas::test::Meeting;

struct Promise {
  std::string text;
  std::vector<std::string> scenarios;
  std::vector<int> world_sizes;
  std::vector<Meeting> meetings = {Meeting::kServed};
};

const std::vector<Promise> kOfGroups{
    {"Collectives give on every rank what they promise",
     {"reductions", "reduced_types", "movements", "overlapping", "identity"},
     {1, 2, 3, 4}},
    {"Messages between two ranks arrive by tag", {"tags"}, {2, 3}},
    {"Waiting has a limit, and can be taken up again", {"patience"}, {3}},
    {"A wrong argument is refused by name before anything is sent", {"refusals"}, {1, 2}},
    {"Some ranks make a group, by a list and by colors",
     {"sub_groups", "split_groups"},
     {4},
     {Meeting::kServed, Meeting::kRankZero}},
    {"A process joins again, after a group and beside one",
     {"second_init"},
     {2},
     {Meeting::kServed, Meeting::kRankZero}},
    {"Ranks that do not come are named", {"missing_rank"}, {3}},
    {"A store that cannot be reached is named", {"no_store"}, {2}, {Meeting::kNowhere}},
    {"Ranks that ask for different backends are told so", {"different_wishes"}, {2}},
    {"A rank that aborts is an error for all, also for those that wait for another one", {"aborted"}, {3}},
    {"Ranks that compare what they do find what differs", {"mismatches"}, {2}},
    {"A broken pipe is an error of the write, unless the program handles it",
     {"broken_pipe", "broken_pipe_handled"},
     {2}},
};

const std::vector<Promise> kOfDataParallel{
    {"Replicas that differ, and what cannot be wrapped, are refused with the reason", {"mismatch"}, {3}},
    {"An unused parameter, and one that is used twice, are named with advice",
     {"unused_parameter", "hidden_output"},
     {2}},
    {"Tensors are found in what forward returns", {"outputs"}, {2}},
    {"Alone the wrapper is a module and nothing more", {"alone"}, {1}},
    {"A hook of the program's own gets each bucket, and makes the gradients", {"own_hook", "hook_result_is_view"}, {2}},
    {"What a hook gives is checked, by the bucket that it is for",
     {"hook_results", "hook_result_of_later_bucket"},
     {2}},
};

const std::vector<Promise> kOfSharedSums{
    {"Sums are gloo's to the bit, and only small and dense tensors of numbers are taken",
     {"shared_sums"},
     {2, 3, 4, 7}},
    {"Ranks that run apart get each sum from the parts that belong to it", {"shared_sums_apart"}, {3}},
    {"One rank that does not share its memory is enough for all to use gloo", {"shared_sums_not_wanted"}, {3}},
    {"A sum that can never be made says why",
     {"shared_sum_of_another_size", "shared_sum_that_is_too_late", "shared_sum_in_an_aborted_group",
      "training_with_a_rank_that_raises", "training_with_a_rank_that_shuts_down"},
     {3}},
};

void check(const std::vector<Promise>& promises) {
  for (const auto& promise : promises) {
    DYNAMIC_SECTION(promise.text) {
      for (const auto& scenario : promise.scenarios) {
        for (const int ranks : promise.world_sizes) {
          for (const auto meeting : promise.meetings) {
            INFO(scenario << " with " << ranks << " ranks");
            const auto results =
                taas::test::spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = ranks, .meeting = meeting});
            CHECK(taas::test::problems(results) == "");
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("Groups of ranks and their collectives") { check(kOfGroups); }

TEST_CASE("DistributedDataParallel and its hooks") { check(kOfDataParallel); }

TEST_CASE("Sums in memory that ranks share") { check(kOfSharedSums); }

}  // namespace scenarios_test
