#include "run/verdict/hang.hpp"

#include "base/files.hpp"
#include "catch.hpp"
#include "run/scenario.hpp"
#include "run/verdict/verdict.hpp"

namespace hang_test {

using namespace taas;
using namespace taas::run;

namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

CollectiveCall all_reduce(std::int64_t number, bool completed = true) {
  return {number, "all_reduce", "[262144] float32", "float32", kMegabyte, "train.py:31", completed, false, 8000};
}

CollectiveCall another(std::int64_t number, const char* operation, const char* shape, const char* where) {
  return {number, operation, shape, "float32", kMegabyte, where, false, false, 8000};
}

Evidence with_calls(std::vector<CollectiveCall> calls, std::vector<int> members = {}) {
  Evidence evidence;
  evidence.collectives.push_back({"0", "default_pg", std::move(members), std::move(calls)});
  return evidence;
}

/// Ranks of which each has ended with what it has recorded.
GenerationRecord ended(const std::vector<Evidence>& ranks) {
  auto record = all_living(static_cast<int>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    record.exited({Generation{0}, Rank{static_cast<int>(i)}, {0, SIGABRT}, ranks[i], at_ms(8000)});
  }
  return record;
}

std::string summary(const std::vector<Evidence>& ranks) {
  auto hang = find_hang(ended(ranks), policy_for(static_cast<int>(ranks.size())));
  return hang ? hang->summary : "no hang";
}

const Evidence kWaits = with_calls({all_reduce(15), all_reduce(16, false), all_reduce(17, false)});

}  // namespace

TEST_CASE("a rank that does not come is named, with what the others wait for and where it was last") {
  auto hang = find_hang(ended({kWaits, kWaits, with_calls({all_reduce(14), all_reduce(15)}), kWaits}), policy_for(4));
  REQUIRE(hang.has_value());
  CHECK(hang->culprits == ranks({2}));
  CHECK(hang->summary == "rank 2 did not come to all_reduce 16 (1 MB float32, train.py:31): ranks 0, 1, 3 waited 8 s");
  CHECK(hang->detail == std::vector<std::string>{"rank 2 last called all_reduce 15 (1 MB float32, train.py:31)"});
}

TEST_CASE("another operation, or another shape, is what the few did") {
  auto broadcast = with_calls({all_reduce(15), another(16, "broadcast", "[262144] float32", "train.py:40")});
  CHECK(summary({kWaits, broadcast, kWaits}) ==
        "rank 1 called broadcast 16 (1 MB float32, train.py:40), where ranks 0, 2 called all_reduce 16 (1 MB float32, "
        "train.py:31)");
  auto shape = with_calls({all_reduce(15), another(16, "all_reduce", "[3, 5] float32", "train.py:31")});
  CHECK(summary({shape, kWaits, kWaits}) ==
        "rank 0 called all_reduce 16 with [3, 5] float32 (train.py:31), ranks 1, 2 with [262144] float32 "
        "(train.py:31)");
  auto uneven = [](const char* other_shape) {
    return with_calls({another(16, "all_to_all", other_shape, "moe.py:9")});  // may differ
  };
  CHECK(summary({uneven("[3] float32"), uneven("[4] float32")}) == "no hang");
}

TEST_CASE("only members of a group are missed there, and only those of whom something is known if there are any") {
  auto member = [](bool stuck) { return with_calls({all_reduce(3, !stuck)}, {0, 2}); };
  CHECK(summary({member(true), Evidence{}, member(true), Evidence{}}) == "no hang");
  CHECK(summary({with_calls({all_reduce(4, false)}, {0, 2}), Evidence{}, member(false), Evidence{}}) ==
        "rank 2 did not come to all_reduce 4 (1 MB float32, train.py:31): rank 0 waited 8 s");
  CHECK(summary({kWaits, Evidence{}, with_calls({all_reduce(15)})}) ==
        "rank 2 did not come to all_reduce 16 (1 MB float32, train.py:31): rank 0 waited 8 s");
  CHECK(summary({kWaits, Evidence{}, kWaits}) ==
        "rank 1 did not come to all_reduce 16 (1 MB float32, train.py:31): ranks 0, 2 waited 8 s");
  CHECK(summary({Evidence{}, Evidence{}}) == "no hang");
}

TEST_CASE("a GPU that has not begun what its rank has called is named, where others have begun it") {
  auto at = [](bool begun) {
    auto call = all_reduce(16, false);
    call.begun = begun;
    return with_calls({all_reduce(15), call});
  };
  auto hang = find_hang(ended({at(true), at(true), at(false), at(true)}), policy_for(4));
  REQUIRE(hang.has_value());
  CHECK(hang->culprits == ranks({2}));
  CHECK(hang->summary ==
        "the GPU of rank 2 did not begin all_reduce 16 (1 MB float32, train.py:31), which it had called: ranks 0, 1, 3 "
        "waited 8 s");
  CHECK(hang->detail.size() == 1);
  CHECK(summary({at(false), at(true), at(false)}) ==
        "the GPUs of ranks 0, 2 did not begin all_reduce 16 (1 MB float32, train.py:31), which they had called: rank 1 "
        "waited 8 s");
  CHECK(summary({at(false), at(false)}) == "no hang");  // as nccl2 has it, which does not say what has begun
  CHECK(summary({at(true), at(true)}) == "no hang");
}

TEST_CASE("records of real ranks tell who is missing") {
  const std::string name = GENERATE("missing-2.11.0", "missing-2.13.0", "missing-2.15.0", "operation-2.15.0");
  std::vector<Evidence> ranks(3);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto bytes = read_file(std::string(TAAS_FLIGHT_RECORDS) + "/" + name + "-" + std::to_string(rank));
    REQUIRE(bytes.has_value());
    ranks[rank].collectives = read_flight_record(*bytes, 4).value();
  }
  auto hang = find_hang(ended(ranks), policy_for(3));
  REQUIRE(hang.has_value());
  CHECK(hang->culprits == std::vector<Rank>{Rank{2}});
  CHECK_THAT(hang->summary, ContainsSubstring("all_reduce 3 (1 MB float32, train.py:"));
}

/// What ranks said on a GPU whose peer did not come, with torch 2.11; frames are left out.
const std::vector<std::string> kWatchdog{
    "[rank0]:[E1127 12:17:05.834 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=16, OpType=ALLREDUCE, Timeout(ms)=8000) ran for 8095 milliseconds before timing out.",
    "[rank0]:[E1127 12:17:09.809 ProcessGroupNCCL.cpp:764] [Rank 0] To avoid data inconsistency, we are taking the "
    "entire process down.",
    "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:692 (most recent call first):"};
const std::vector<std::string> kRaised{
    "[rank0]: Traceback (most recent call last):", "[rank0]:   File \"loop.py\", line 50, in main",
    "[rank0]:     loss.backward()",
    "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0. "};
const std::vector<std::string> kTerminated{
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank "
    "0] "
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=16, OpType=ALLREDUCE, Timeout(ms)=8000)",
    "Exception raised from run at ProcessGroupNCCL.cpp:2125 (most recent call first):",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d", ""};
const std::vector<std::string> kStacks{"Fatal Python error: Aborted", "",
                                       "Thread 0x1 (most recent call first):", "  File \"loop.py\", line 50 in main"};
const std::vector<std::string> kCrashed{
    "Fatal Python error: Segmentation fault", "",
    "Current thread 0x1 (most recent call first):", "  File \"training_facts.py\", line 163 in _gpus"};

TEST_CASE("the verdict on a rank that waited in vain is about the one that it waited for") {
  using Parts = std::vector<std::vector<std::string>>;
  const auto parts = GENERATE(Parts{kWatchdog, kTerminated, kStacks}, Parts{kWatchdog, kRaised, kTerminated, kStacks},
                              Parts{kWatchdog, kRaised, kTerminated}, Parts{kTerminated, kStacks},
                              Parts{kWatchdog, kRaised, kCrashed}, Parts{kWatchdog, kCrashed});
  const int signal = GENERATE(SIGABRT, SIGSEGV);
  auto waited = kWaits;
  waited.last_lines.clear();
  for (const auto& part : parts) waited.last_lines.insert(waited.last_lines.end(), part.begin(), part.end());
  waited.first_error_at = at_ms(8100);
  auto record = all_living(3);
  record.exited({Generation{0}, Rank{0}, {0, signal}, waited, at_ms(8200)});
  record.stop(SIGTERM, at_ms(8201));
  record.exited({Generation{0}, Rank{1}, {0, SIGTERM}, with_calls({all_reduce(15)}), at_ms(8300)});
  record.exited({Generation{0}, Rank{2}, {0, SIGABRT}, waited, at_ms(8300)});
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.cause == Cause::kHang);
  CHECK(verdict.culprit == Rank{1});
  CHECK(verdict.exit_code == 128 + signal);
  CHECK_THAT(verdict.summary, ContainsSubstring("rank 1 did not come to all_reduce 16"));
}

TEST_CASE("what a rank raised itself stays the cause, also when it is taken down for the others afterwards") {
  auto failed = kWaits;
  failed.last_lines = {"[rank0]: Traceback (most recent call last):", "[rank0]:   File \"loop.py\", line 26, in fail",
                       "[rank0]: ValueError: bad sample 17"};
  failed.last_lines.insert(failed.last_lines.end(), kWatchdog.begin(), kWatchdog.end());
  failed.first_error_at = at_ms(8100);
  auto record = all_living(2);
  record.exited({Generation{0}, Rank{0}, {0, SIGABRT}, failed, at_ms(8200)});
  record.stop(SIGTERM, at_ms(8201));
  record.exited({Generation{0}, Rank{1}, {0, SIGTERM}, with_calls({all_reduce(15)}), at_ms(8300)});
  auto verdict = judge_failure(record, policy_for(2));
  CHECK(verdict.culprit == Rank{0});
  REQUIRE_FALSE(verdict.detail.empty());
  CHECK_THAT(verdict.detail.back(), ContainsSubstring("ValueError: bad sample 17"));
}

}  // namespace hang_test
