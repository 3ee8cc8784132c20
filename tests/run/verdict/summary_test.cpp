#include "run/verdict/summary.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace summary_test {

using namespace taas;
using namespace taas::run;

namespace {

/// What is told of rank 1, which ended so.
std::string told(ExitStatus status, Cause cause, Evidence evidence = {}) {
  auto record = all_living(2);
  record.exited({Generation{0}, Rank{1}, status, std::move(evidence), at_ms(10)});
  return summarize(find_culprit(record), cause, record, policy_for(2));
}

}  // namespace

TEST_CASE("a summary names the rank and what it did") {
  CHECK(told({42}, Cause::kExitCode) == "rank 1 exited with code 42");
  CHECK(told({0, SIGSEGV}, Cause::kSignal) == "rank 1 was killed by SIGSEGV");
  CHECK(told({0, SIGKILL}, Cause::kOutOfMemory) == "rank 1 was killed by the kernel's out-of-memory killer");
  CHECK(told({1}, Cause::kException, raised("ValueError: bad shape", 5)) == "rank 1 raised ValueError: bad shape");
}

TEST_CASE("a summary fits into a line") {
  auto text = told({1}, Cause::kException, raised("ValueError: " + std::string(500, 'x'), 5));
  CHECK(text.size() == 160);
  CHECK(text.ends_with("..."));
}

TEST_CASE("nodes that go away are named with their machines") {
  CHECK(describe(NodeLost{Generation{0}, NodeIndex{2}, "hostb", "no sign of life for 2.5 s", at_ms(0), false,
                          at_ms(0)}) == "node 2 (hostb) was lost: no sign of life for 2.5 s");
  CHECK(describe(NodeLeaves{Generation{0}, NodeIndex{2}, "", SIGTERM, at_ms(0)}) ==
        "node 2 leaves the run: it was told to stop by SIGTERM");
}

}  // namespace summary_test
