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
  return {number, "all_reduce", "[262144] float32", "float32", kMegabyte, "train.py:31", completed, false, 8000, false};
}

CollectiveCall another(std::int64_t number, const char* operation, const char* shape, const char* where) {
  return {number, operation, shape, "float32", kMegabyte, where, false, false, 8000, false};
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

TEST_CASE("a rank whose GPU has not begun what all have called is named, where the records tell") {
  auto rank = [](bool begun, bool tells = true) {
    auto before = all_reduce(15);
    auto call = all_reduce(16, false);
    before.started = tells;
    call.started = begun;
    return with_calls({before, call});
  };
  auto hang = find_hang(ended({rank(true), rank(false), rank(true)}), policy_for(3));
  REQUIRE(hang.has_value());
  CHECK(hang->culprits == ranks({1}));
  CHECK(hang->summary ==
        "rank 1 called all_reduce 16 (1 MB float32, train.py:31), but the GPU did not begin it: ranks 0, 2 waited 8 s");
  CHECK(summary({rank(true), rank(true)}) == "no hang");
  CHECK(summary({rank(false), rank(false)}) == "no hang");
  CHECK(summary({rank(false, false), rank(true)}) == "no hang");
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

TEST_CASE("the verdict on a rank that waited in vain is about the one that it waited for") {
  auto waited = kWaits;
  waited.last_lines = {
      "terminate called after throwing an instance of 'c10::DistBackendError'",
      "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=16, OpType=ALLREDUCE, Timeout(ms)=8000) ran for 8001 milliseconds before timing "
      "out."};
  waited.first_error_at = at_ms(8100);
  auto record = all_living(3);
  record.exited({Generation{0}, Rank{0}, {0, SIGABRT}, waited, at_ms(8200)});
  record.stop(SIGTERM, at_ms(8201));
  record.exited({Generation{0}, Rank{1}, {0, SIGTERM}, with_calls({all_reduce(15)}), at_ms(8300)});
  record.exited({Generation{0}, Rank{2}, {0, SIGABRT}, waited, at_ms(8300)});
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.cause == Cause::kHang);
  CHECK(verdict.culprit == Rank{1});
  CHECK(verdict.exit_code == 128 + SIGABRT);
  CHECK_THAT(verdict.summary, ContainsSubstring("rank 1 did not come to all_reduce 16"));
}

}  // namespace hang_test
