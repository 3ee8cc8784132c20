#include "run/verdict/absence.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"
#include "run/verdict/ended_ranks.hpp"

namespace absence_test {

using namespace taas;
using namespace taas::run;
using namespace taas::run::ended_ranks;

namespace {

constexpr const char* kTimedOut =
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for recv operation to complete";

Evidence raised_at(const std::string& line, const std::string& exception, long milliseconds) {
  return said({"Traceback (most recent call last):", "  File \"/home/u/train.py\", line " + line + ", in step",
               "    work()", exception},
              at_ms(milliseconds));
}

Evidence timed_out(const std::string& line = "7") { return raised_at(line, kTimedOut, 950); }

}  // namespace

TEST_CASE("who went on while all others waited in vain is who did not come") {
  auto record = all_living(4);
  end(record, 0, 1000, {1}, timed_out());
  CHECK(only_waited_in_vain(record));
  end(record, 1, 1010, {1}, lost_peer(1005));
  end(record, 3, 1020, {1}, lost_peer(1006));
  record.stop(SIGTERM, at_ms(2000));
  end(record, 2, 2100, kTerminated);
  auto verdict = judge_failure(record, policy_for(4));
  CHECK(verdict.cause == Cause::kHang);
  CHECK(verdict.culprit == Rank{2});
  CHECK(verdict.summary == "rank 2 did not come, and ranks 0, 1, 3 waited for it in vain at train.py:7");
  CHECK(verdict.consequences == ranks({0, 1, 3}));
  CHECK_FALSE(verdict.detail.empty());
  CHECK(verdict.exit_code == 1);
}

TEST_CASE("who had ended well before is named, whoever was still waiting") {
  auto record = all_living(4);
  end(record, 2, 500, {});
  end(record, 0, 1000, {1}, timed_out());
  record.stop(SIGTERM, at_ms(1000));
  end(record, 1, 1010, kTerminated);
  end(record, 3, 1010, {1}, lost_peer(1005));
  auto verdict = judge_failure(record, policy_for(4));
  CHECK(verdict.culprit == Rank{2});
  CHECK(verdict.summary.starts_with("rank 2 had ended well, and rank"));
}

TEST_CASE("where all waited, the few at another line are named, if they are fewer") {
  auto record = all_living(3);
  end(record, 0, 1000, {1}, timed_out("31"));
  end(record, 1, 1010, {1}, timed_out("40"));
  end(record, 2, 1010, {1}, timed_out("31"));
  record.stop(SIGTERM, at_ms(1010));
  CHECK(judge_failure(record, policy_for(3)).summary ==
        "rank 1 waited at train.py:40, where ranks 0, 2 waited at train.py:31, in vain");

  auto even = all_living(2);
  end(even, 0, 1000, {1}, timed_out("31"));
  end(even, 1, 1010, {1}, timed_out("40"));
  even.stop(SIGTERM, at_ms(1010));
  CHECK(judge_failure(even, policy_for(2)).culprit == Rank{0});
  CHECK_FALSE(find_absence(even, policy_for(2)).has_value());

  auto same = all_living(2);
  end(same, 0, 1000, {1}, timed_out());
  end(same, 1, 1010, {1}, timed_out());
  same.stop(SIGTERM, at_ms(1010));
  CHECK_FALSE(find_absence(same, policy_for(2)).has_value());
}

TEST_CASE("where one has a reason of its own, nobody is looked for") {
  auto record = all_living(3);
  end(record, 0, 1000, {1}, timed_out());
  end(record, 1, 1010, {1}, raised("ValueError: bad shape", 900));
  CHECK_FALSE(only_waited_in_vain(record));
  record.stop(SIGTERM, at_ms(1010));
  end(record, 2, 1100, kTerminated);
  CHECK(judge_failure(record, policy_for(3)).culprit == Rank{1});
  CHECK_FALSE(find_absence(record, policy_for(3)).has_value());
}

TEST_CASE("a moment is given for the reasons of a timeout, and of a monitored barrier, alone") {
  auto only = [](const Evidence& evidence) {
    auto record = all_living(2);
    end(record, 0, 1000, {1}, evidence);
    return only_waited_in_vain(record);
  };
  CHECK(only(timed_out()));
  CHECK(
      only(raised("RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for "
                  "send/recv from rank 0. Please check rank 0 logs for faulty rank.",
                  950)));
  CHECK_FALSE(only(lost_peer(950)));
  CHECK_FALSE(only(raised("RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", 950)));
  CHECK_FALSE(only(raised("ValueError: bad shape", 950)));
  CHECK_FALSE(only_waited_in_vain(all_living(2)));
}

}  // namespace absence_test
