#include "run/agent/coordinator_search.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace coordinator_search_test {

using namespace taas;
using namespace taas::run;

namespace {

LinkDown down(const std::string& reason = "no answer", bool refused = false) { return {reason, at_ms(0), refused}; }

}  // namespace

TEST_CASE("attempts follow each other more slowly each time") {
  CoordinatorSearch search({});
  CHECK(search.on(down(), at_ms(0)).empty());
  CHECK(search.next_deadline() == at_ms(100));
  CHECK_FALSE(search.take_attempt(at_ms(99)));
  CHECK(search.take_attempt(at_ms(100)));
  search.on(down(), at_ms(100));
  CHECK(search.next_deadline() == at_ms(300));
  for (int i = 0; i < 20; ++i) search.on(down(), at_ms(1000));
  CHECK(search.take_attempt(at_ms(3000)));
}

TEST_CASE("the search is given up after a while, with the last reason") {
  CoordinatorSearch search({});
  search.on(down("hosta: wrong secret"), at_ms(0));
  CHECK(search.take_failure(at_ms(59999)).empty());
  CHECK(search.take_failure(at_ms(60000)) ==
        "the coordinator could not be reached for 60 s: hosta: wrong secret (TAAS_TOKEN or --token-file is not the "
        "same)");
}

TEST_CASE("a coordinator that was there and refuses is gone") {
  CoordinatorSearch search({});
  CHECK(search.on(down("connection refused", true), at_ms(0)).empty());
  search.found();
  CHECK_FALSE(search.next_deadline().has_value());
  CHECK(search.on(down("connection refused", true), at_ms(0)) == "the coordinator is gone: connection refused");
}

TEST_CASE("each reason is told once, and nothing when nobody is looked for") {
  CoordinatorSearch search({});
  search.on(down(), at_ms(0));
  CHECK(search.take_notice(at_ms(2999), true).empty());
  CHECK(search.take_notice(at_ms(3000), true) == "still looking for the coordinator, for 57 s more: no answer");
  CHECK(search.take_notice(at_ms(33000), true).empty());
  search.on(down("another"), at_ms(40000));
  CHECK(search.take_notice(at_ms(63000), false).empty());
  search.stop();
  CHECK_FALSE(search.next_deadline().has_value());
}

TEST_CASE("a name that nobody knows yet is waited for, and how long is told again and again") {
  AgentPolicy policy;
  policy.connect_for = std::chrono::seconds(600);
  CoordinatorSearch search(policy);
  auto unknown = [&search](long when) {
    search.on({"job-0.svc port 29400: no address is known for this name", at_ms(when), false, "job-0.svc"},
              at_ms(when));
  };
  unknown(0);
  CHECK(search.take_notice(at_ms(3000), true) ==
        "waiting for the name job-0.svc, 3 s: no address is known for it yet; for 597 s more");
  unknown(32000);
  CHECK(search.take_notice(at_ms(33000), true) ==
        "waiting for the name job-0.svc, 33 s: no address is known for it yet; for 567 s more");
  search.on(down("job-0.svc (10.0.0.7) port 29400: timed out"), at_ms(40000));
  CHECK(search.take_notice(at_ms(63000), true) ==
        "still looking for the coordinator, for 537 s more: job-0.svc (10.0.0.7) port 29400: timed out");
  CHECK(search.take_notice(at_ms(93000), true).empty());
}

}  // namespace coordinator_search_test
