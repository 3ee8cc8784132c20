#include "run/supervisor/restarts.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace restarts_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

Verdict failed(Cause cause, std::string raised = {}) {
  Verdict verdict;
  verdict.cause = cause;
  verdict.raised = std::move(raised);
  return verdict;
}

GenerationRecord with_lost_node(bool replaceable) {
  auto record = all_living(2);
  record.lost({Generation{0}, NodeIndex{0}, "hosta", "no sign of life", at_ms(0), replaceable, at_ms(0)},
              {NodeIndex{0}, NodeIndex{1}});
  return record;
}

/// One run whose generations fail one after the other, each at once unless it is said otherwise.
struct Failures {
  explicit Failures(int limit, std::optional<std::chrono::milliseconds> interval = 0ms) : policy(policy_for(2, limit)) {
    policy.restart_interval = interval;
    policy.startup_needs_store = true;
  }
  AfterFailure operator()(const Verdict& verdict, Duration lived = 0ms, bool reached_store = false) {
    auto record = all_living(2);
    if (reached_store) record.store_reached(StoreReached{Generation{0}, now});
    restarts.begin(now);
    now += lived;
    auto told = verdict;
    told.at = now;
    return restarts.decide(told, record, now, true);
  }

  Policy policy;
  Restarts restarts{policy};
  Instant now = at_ms(0);
};

const Verdict kCode = failed(Cause::kExitCode);
const Verdict kNameError = failed(Cause::kException, "NameError: name 'x' is not defined\n  File \"a.py\", line 3");

}  // namespace

TEST_CASE("as many generations follow as restarts are allowed") {
  Failures fails(1);
  const auto first = fails(kCode);
  CHECK(first.restarting);
  CHECK(first.restart == 1);
  CHECK_FALSE(fails(kCode).restarting);
}

TEST_CASE("a lost node that can be replaced costs no restart, and nothing waits") {
  const auto policy = [] {
    auto made = policy_for(2, 0);
    made.restart_interval.reset();
    return made;
  }();
  Restarts restarts(policy);
  const auto lost = failed(Cause::kNodeLost);
  const auto replaced = restarts.decide(lost, with_lost_node(true), at_ms(0), true);
  CHECK(replaced.restarting);
  CHECK(replaced.restart == 0);
  CHECK(replaced.pause == 0s);
  CHECK_FALSE(restarts.decide(lost, with_lost_node(false), at_ms(0), true).restarting);
}

TEST_CASE("a program that cannot be executed is not tried again") {
  CHECK_FALSE(Failures(3)(failed(Cause::kExecFailed)).restarting);
}

TEST_CASE("the same exception at the same line twice, before any rank reached the store, ends the run and says why") {
  Failures fails(5);
  CHECK(fails(kNameError).restarting);
  auto again = kNameError;
  again.hint = "install it";
  const auto second = fails(again);
  CHECK_FALSE(second.restarting);
  CHECK(second.hint ==
        "not restarted: it raised the same exception at the same line twice, before any rank had reached the store; "
        "install it");
}

TEST_CASE("exceptions that are not certain to come again are restarted as often as allowed") {
  auto [other, lived, reached_store] = GENERATE(table<std::string, Duration, bool>({
      {"NameError: name 'x' is not defined\n  File \"a.py\", line 4", 0s, false},
      {"NameError: name 'y' is not defined\n  File \"a.py\", line 3", 0s, false},
      {kNameError.raised, 0s, true},    // it had got further
      {kNameError.raised, 60s, false},  // it had worked for a while
  }));
  Failures fails(3);
  fails(kNameError);
  CHECK(fails(failed(Cause::kException, other), lived, reached_store).restarting);
  CHECK(fails(kNameError).restarting);  // the second one, but not in a row
}

TEST_CASE("what a machine, a network or a device may have caused can end otherwise the next time") {
  auto raised = GENERATE(as<std::string>(), "OSError: stale file handle", "requests.exceptions.ReadTimeout: timed out",
                         "huggingface_hub.errors.LocalEntryNotFoundError: offline", "RuntimeError: CUDA error: busy",
                         "torch.distributed.DistBackendError: NCCL error", "json.decoder.JSONDecodeError: half a file");
  Failures fails(3);
  for (int i = 0; i < 3; ++i) CHECK(fails(failed(Cause::kException, raised)).restarting);
}

TEST_CASE("restarts after failures at the start back off up to half a minute, until a generation has lived") {
  Failures fails(100, std::nullopt);
  std::vector<long> pauses;
  for (int i = 0; i < 7; ++i) pauses.push_back(fails(kCode).pause / 1s);
  CHECK(pauses == std::vector<long>{1, 2, 4, 8, 16, 30, 30});
  CHECK(fails(kCode, 10s).pause == 0s);
  CHECK(fails(kCode).pause == 1s);
}

TEST_CASE("with --monitor-interval generations begin that far apart") {
  Failures fails(100, 5s);
  CHECK(fails(kCode).pause == 5s);
  CHECK(fails(kCode, 2s).pause == 3s);
  CHECK(fails(kCode, 7s).pause == 0s);
}

TEST_CASE("failures in a row are alike whichever rank was the first, while they come soon and are the same") {
  Failures fails(100);
  auto by_rank = [](int rank, int code) {
    auto verdict = kCode;
    verdict.culprit = Rank{rank};
    verdict.status.code = code;
    return verdict;
  };
  std::vector<int> alike;
  for (const auto& verdict : {by_rank(0, 1), by_rank(1, 1), by_rank(0, 1), by_rank(0, 2), by_rank(0, 2)}) {
    alike.push_back(fails(verdict).alike);
  }
  auto other_words = by_rank(0, 2);
  other_words.detail = {"step 7: no such shard"};
  alike.push_back(fails(other_words).alike);
  alike.push_back(fails(other_words).alike);
  alike.push_back(fails(other_words, 10s).alike);
  alike.push_back(fails(other_words).alike);
  CHECK(alike == std::vector<int>{0, 1, 2, 0, 1, 0, 1, 0, 0});
}

}  // namespace restarts_test
