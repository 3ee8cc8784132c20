// Who of several that failed is to blame.
#include <cerrno>

#include "catch.hpp"
#include "ended_ranks.hpp"
#include "run/scenario.hpp"
#include "run/verdict/verdict.hpp"

namespace verdict_culprit_test {

using namespace taas;
using namespace taas::run;
using ended_ranks::end;
using ended_ranks::kTerminated;

namespace {

/// Ranks 2 and 3 were on the node that was lost; rank 0 ended like this.
Verdict judge_with_loss(RankExited exit, long last_sign_of_life, long stop) {
  auto record = all_living(4);
  auto policy = policy_for(4, 0, 2);
  bool before = exit.at < at_ms(stop);
  if (before) record.exited(exit);
  record.stop(SIGTERM, at_ms(stop));
  if (!before) record.exited(exit);
  record.exited({Generation{0}, Rank{1}, {0, SIGTERM}, {}, at_ms(stop + 5)});
  record.lost({Generation{0}, NodeIndex{1}, "hostb", "gone", at_ms(last_sign_of_life), false, at_ms(stop + 2000)},
              policy.node_of_rank);
  return judge_failure(record, policy);
}

}  // namespace

TEST_CASE("of two failures 30 ms apart the first is named") {
  auto record = all_living(8);
  end(record, 5, 1000, {7});
  record.stop(SIGTERM, at_ms(1000));
  end(record, 2, 1030, {9});
  for (int rank : {0, 1, 3, 4, 6, 7}) end(record, rank, 1040, kTerminated);
  auto verdict = judge_failure(record, policy_for(8));
  CHECK(verdict.culprit == Rank{5});
  CHECK(verdict.exit_code == 7);
  CHECK(verdict.consequences == ranks({2}));
  CHECK(verdict.at == at_ms(1000));
}

TEST_CASE("failures in the same batch of events are ordered by when they happened") {
  auto record = all_living(3);
  end(record, 2, 1010, {9});
  end(record, 0, 1000, {7});
  CHECK(judge_failure(record, policy_for(3)).culprit == Rank{0});
}

TEST_CASE("the cause is when the error was told, not when the rank had finally ended") {
  auto record = all_living(3);
  end(record, 2, 1030, {9});
  record.stop(SIGTERM, at_ms(1030));
  end(record, 0, 1500, {1}, raised("ValueError: bad shape", 1000));
  end(record, 1, 1500, kTerminated);
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.culprit == Rank{0});
  CHECK(verdict.at == at_ms(1000));
  CHECK(verdict.consequences == ranks({2}));
}

TEST_CASE("a rank that lost a peer is not to blame") {
  auto record = all_living(3);
  end(record, 0, 1000, {1}, lost_peer(950));
  record.stop(SIGTERM, at_ms(1000));
  SECTION("when another one ended with an error of its own later") {
    end(record, 1, 1400, {1}, raised("ValueError: bad shape", 900));
    end(record, 2, 1400, kTerminated);
    auto verdict = judge_failure(record, policy_for(3));
    CHECK(verdict.culprit == Rank{1});
    CHECK(verdict.consequences == ranks({0}));
    CHECK(verdict.stopped == ranks({2}));
  }
  SECTION("when another one had told its error before it was stopped") {
    end(record, 1, 1400, kTerminated, raised("ValueError: bad shape", 900));
    end(record, 2, 1400, kTerminated);
    auto verdict = judge_failure(record, policy_for(3));
    CHECK(verdict.culprit == Rank{1});
    CHECK(verdict.cause == Cause::kException);
    CHECK(verdict.exit_code == 1);
    CHECK(verdict.summary == "rank 1 raised ValueError: bad shape");
  }
  SECTION("when another one was killed while the first was being stopped") {
    end(record, 1, 1001, {0, SIGSEGV});
    end(record, 2, 1400, kTerminated);
    CHECK(judge_failure(record, policy_for(3)).culprit == Rank{1});
  }
  SECTION("unless there is nobody else") {
    end(record, 1, 1400, kTerminated);
    end(record, 2, 1400, {1}, lost_peer(960));
    auto verdict = judge_failure(record, policy_for(3));
    CHECK(verdict.culprit == Rank{0});
    CHECK(verdict.consequences == ranks({2}));
    CHECK(verdict.hint.empty());
  }
  SECTION("a native death is never that") {
    auto native = all_living(2);
    end(native, 0, 1000, {1}, lost_peer(950));
    end(native, 1, 1100, {0, SIGSEGV}, lost_peer(960));
    CHECK(judge_failure(native, policy_for(2)).culprit == Rank{1});
  }
}

TEST_CASE("rank 0 names who did not pass the monitored barrier, and others then lose rank 0") {
  int first_told = GENERATE(900, 995, 1050);  // of rank 2 and the stop the time is fixed
  auto record = all_living(3);
  end(record, 2, 1000, {1},
      raised(
          "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv "
          "from rank 0. Please check rank 0 logs for faulty rank.",
          990));
  record.stop(SIGTERM, at_ms(1000));
  end(record, 0, 1100, {1},
      raised("RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", first_told));
  end(record, 1, 1100, kTerminated);
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.culprit == Rank{0});
  CHECK(verdict.summary.find("Rank 1 failed to pass monitoredBarrier") != std::string::npos);
  CHECK(verdict.consequences == ranks({2}));
}

TEST_CASE("those who lost a rank that had ended well are to blame, and told so") {
  auto record = all_living(3);
  end(record, 1, 900, {});
  end(record, 0, 1000, {1}, lost_peer(950));
  record.stop(SIGTERM, at_ms(1000));
  end(record, 2, 1010, {1});
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.culprit == Rank{0});
  CHECK_THAT(verdict.hint, ContainsSubstring("already ended well"));
}

TEST_CASE("an error that was survived long ago is not the cause") {
  const long hour = 3600 * 1000;
  auto record = all_living(3);
  end(record, 0, hour, {42});
  record.stop(SIGTERM, at_ms(hour));
  end(record, 1, hour + 10, kTerminated, raised("OSError: retrying", 5));
  end(record, 2, hour + 10, kTerminated);
  CHECK(judge_failure(record, policy_for(3)).culprit == Rank{0});

  auto hung = all_living(2);
  end(hung, 0, hour, {1}, lost_peer(hour - 5));
  hung.stop(SIGTERM, at_ms(hour));
  end(hung, 1, hour + 10, kTerminated, raised("ValueError: then it hung", 5));
  CHECK(judge_failure(hung, policy_for(2)).culprit == Rank{1});
}

TEST_CASE("an error after the launcher's signal is a consequence of it") {
  auto record = all_living(2);
  end(record, 0, 1000, {42});
  record.stop(SIGTERM, at_ms(1000));
  end(record, 1, 1300, {1}, raised("SystemError: interrupted", 1200));
  auto verdict = judge_failure(record, policy_for(2));
  CHECK(verdict.culprit == Rank{0});
  CHECK(verdict.consequences == ranks({1}));
}

TEST_CASE("a GPU's error is the cause, also when the watchdog's abort is faster and others lose their peer") {
  auto by_watchdog =
      said({"terminate called after throwing an instance of 'c10::DistBackendError'",
            "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with "
            "exception: CUDA error: device-side assert triggered",
            "NCCL communicator was aborted on rank 1."},
           at_ms(90));
  auto record = all_living(3);
  record.exited({Generation{0}, Rank{0}, {1}, lost_peer(95), at_ms(99)});
  record.exited({Generation{0}, Rank{1}, {0, SIGABRT}, by_watchdog, at_ms(100)});
  record.stop(SIGTERM, at_ms(101));
  record.exited({Generation{0}, Rank{2}, {0, SIGTERM}, {}, at_ms(110)});
  auto verdict = judge_failure(record, policy_for(3));
  CHECK(verdict.culprit == Rank{1});
  CHECK(verdict.summary == "rank 1 was killed by SIGABRT: CUDA error: device-side assert triggered");
  CHECK_THAT(verdict.hint, ContainsSubstring("CUDA_LAUNCH_BLOCKING=1"));
  CHECK(verdict.exit_code == 128 + SIGABRT);
}

TEST_CASE("a program that cannot be executed after the stop is not what broke the generation") {
  GenerationRecord record(Generation{0}, 2);
  record.spawned({Generation{0}, Rank{0}, 100, at_ms(0)});
  record.exited({Generation{0}, Rank{0}, {1}, lost_peer(9), at_ms(10)});
  record.stop(SIGTERM, at_ms(10));
  record.spawn_failed({Generation{0}, Rank{1}, ENOENT, "cannot execute ./x", at_ms(20)});
  CHECK(judge_failure(record, policy_for(2)).culprit == Rank{0});
}

TEST_CASE("a lost node is to blame before those that only lost a peer, whenever it was last heard of") {
  for (long last : {50L, 1500L}) {
    auto verdict = judge_with_loss({Generation{0}, Rank{0}, {1}, lost_peer(90), at_ms(100)}, last, 101);
    CHECK(verdict.cause == Cause::kNodeLost);
    CHECK(verdict.node == NodeIndex{1});
    CHECK(verdict.culprit == Rank{-1});
    CHECK(verdict.summary == "node 1 (hostb) was lost: gone");
    CHECK(verdict.exit_code == 1);
    CHECK(verdict.consequences == ranks({0}));
    CHECK(verdict.stopped == ranks({1}));
  }
}

TEST_CASE("of a lost node and a rank that failed by itself the first is to blame") {
  RankExited failure{Generation{0}, Rank{0}, {42}, {}, at_ms(100)};
  CHECK(judge_with_loss(failure, 50, 101).cause == Cause::kNodeLost);
  auto verdict = judge_with_loss(failure, 1500, 101);
  CHECK(verdict.cause == Cause::kExitCode);
  CHECK(verdict.culprit == Rank{0});
  CHECK(verdict.node == NodeIndex{0});
}

}  // namespace verdict_culprit_test
