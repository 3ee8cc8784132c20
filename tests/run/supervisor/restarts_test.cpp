#include "run/supervisor/restarts.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace restarts_test {

using namespace taas;
using namespace taas::run;

namespace {

Verdict failed(Cause cause, long when = 0) {
  Verdict verdict;
  verdict.cause = cause;
  verdict.at = at_ms(when);
  return verdict;
}

GenerationRecord with_lost_node(bool replaceable) {
  auto record = all_living(2);
  record.lost({Generation{0}, NodeIndex{0}, "hosta", "no sign of life", at_ms(0), replaceable, at_ms(0)},
              {NodeIndex{0}, NodeIndex{1}});
  return record;
}

}  // namespace

TEST_CASE("as many generations follow as restarts are allowed") {
  auto policy = policy_for(2, 1);
  Restarts restarts(policy);
  auto record = all_living(2);
  CHECK(restarts.allows(failed(Cause::kExitCode), record));
  CHECK(restarts.use(failed(Cause::kExitCode), record) == 1);
  CHECK_FALSE(restarts.allows(failed(Cause::kExitCode), record));
}

TEST_CASE("a lost node that can be replaced costs no restart") {
  auto policy = policy_for(2, 0);
  Restarts restarts(policy);
  CHECK(restarts.allows(failed(Cause::kNodeLost), with_lost_node(true)));
  CHECK(restarts.use(failed(Cause::kNodeLost), with_lost_node(true)) == 0);
  CHECK_FALSE(restarts.allows(failed(Cause::kNodeLost), with_lost_node(false)));
}

TEST_CASE("a program that cannot be executed is not tried again") {
  auto policy = policy_for(2, 3);
  CHECK_FALSE(Restarts(policy).allows(failed(Cause::kExecFailed), all_living(2)));
}

TEST_CASE("a program that raises before any rank reached the store is not tried again, and the hint says why") {
  auto policy = policy_for(2, 3);
  policy.startup_needs_store = true;
  Restarts restarts(policy);
  restarts.begin(at_ms(0));
  auto record = all_living(2);
  auto early = failed(Cause::kException, 100);
  CHECK_FALSE(restarts.allows(early, record));
  CHECK(restarts.explain(early, record) ==
        "not restarted: no rank had reached the store; what fails while it starts fails again");
  early.hint = "install it";
  CHECK(restarts.explain(early, record) == "not restarted: no rank had reached the store; install it");
  CHECK(restarts.allows(failed(Cause::kException, 60000), record));
  record.store_reached(StoreReached{Generation{0}, at_ms(0)});
  CHECK(restarts.allows(early, record));
  CHECK(restarts.explain(early, record) == "install it");
}

}  // namespace restarts_test
