#include "run/verdict/verdict.hpp"

#include <cerrno>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace verdict_test {

using namespace taas;
using namespace taas::run;

namespace {

const Generation kFirst{0};
constexpr ExitStatus kTerminated{0, SIGTERM};

void end(GenerationRecord& record, int rank, long when, ExitStatus status, Evidence evidence = {}) {
  record.exited({kFirst, Rank{rank}, status, std::move(evidence), at_ms(when)});
}

std::size_t report_lines(const Verdict& verdict) {
  return 2 + verdict.detail.size() + !verdict.consequences.empty() + !verdict.stopped.empty() + !verdict.hint.empty() +
         !verdict.log_path.empty();
}

}  // namespace

TEST_CASE("each way to fail has its cause, its words and its exit code") {
  struct Row {
    ExitStatus status;
    Evidence evidence;
    Cause cause;
    int exit_code;
    const char* summary;
  };
  Evidence starved;
  starved.out_of_memory_kill = true;
  Evidence late = starved;
  late.expired_timer = "step";
  const Row rows[]{
      {{42}, {}, Cause::kExitCode, 42, "rank 1 exited with code 42"},
      {{0, SIGSEGV, true}, {}, Cause::kSignal, 139, "rank 1 was killed by SIGSEGV (core dumped)"},
      {{0, SIGKILL}, {}, Cause::kSignal, 137, "rank 1 was killed by SIGKILL"},
      {{0, SIGTERM}, {}, Cause::kSignal, 143, "rank 1 was killed by SIGTERM"},
      {{0, SIGKILL}, starved, Cause::kOutOfMemory, 137, "rank 1 was killed by the kernel's out-of-memory killer"},
      {{0, SIGKILL}, late, Cause::kSignal, 137, "rank 1 was killed by SIGKILL: its timer \"step\" had expired"},
      {{4}, late, Cause::kExitCode, 4, "rank 1 exited with code 4: its timer \"step\" had expired"},
      {{0, SIGSEGV}, starved, Cause::kSignal, 139, "rank 1 was killed by SIGSEGV"},
      {{1}, raised("ValueError: bad shape", 10), Cause::kException, 1, "rank 1 raised ValueError: bad shape"},
      {{3}, raised("ValueError: bad shape", 10), Cause::kExitCode, 3, "rank 1 exited with code 3"},
      {{1},
       lost_peer(10),
       Cause::kException,
       1,
       "rank 1 raised RuntimeError: [pair.cc:561] Connection closed by peer [127.0.0.1]:24984."},
  };
  for (const auto& row : rows) {
    auto record = all_living(4);
    end(record, 1, 20, row.status, row.evidence);
    record.stop(SIGTERM, at_ms(20));
    for (int other : {0, 2, 3}) end(record, other, 30, kTerminated);
    auto verdict = judge_failure(record, policy_for(4));
    INFO(row.summary);
    CHECK(verdict.cause == row.cause);
    CHECK(verdict.culprit == Rank{1});
    CHECK(verdict.exit_code == row.exit_code);
    CHECK(verdict.summary == row.summary);
    CHECK(verdict.stopped == ranks({0, 2, 3}));
    CHECK(verdict.consequences.empty());
  }
}

TEST_CASE("a program that cannot be executed") {
  for (auto [number, code] : {std::pair(ENOENT, 127), std::pair(EACCES, 126), std::pair(ENOEXEC, 126)}) {
    GenerationRecord record(kFirst, 2);
    record.spawn_failed({kFirst, Rank{0}, number, "cannot execute './x': no such file or directory", at_ms(1)});
    auto verdict = judge_failure(record, policy_for(2));
    CHECK(verdict.cause == Cause::kExecFailed);
    CHECK(verdict.exit_code == code);
    CHECK(verdict.summary == "cannot execute './x': no such file or directory");
    CHECK(verdict.culprit == Rank{0});
  }
}

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

TEST_CASE("ranks that were killed, that heeded SIGTERM or that ended in peace were stopped") {
  auto record = all_living(5);
  end(record, 0, 1000, {42});
  record.stop(SIGTERM, at_ms(1000));
  end(record, 1, 1001, {143});
  end(record, 2, 1002, {});
  record.kill(at_ms(2000));
  end(record, 3, 2001, {0, SIGKILL});
  record.gone(at_ms(2002));
  CHECK(judge_failure(record, policy_for(5)).stopped == ranks({1, 2, 3, 4}));
}

TEST_CASE("a store timeout names those who never joined") {
  auto waited = raised("torch.distributed.DistStoreError: wait timeout after 2000ms, keys: /default_pg/0", 990);
  auto record = all_living(4);
  for (int rank : {0, 1}) record.joined({kFirst, Rank{rank}, at_ms(1)});
  end(record, 1, 1000, {1}, waited);
  record.stop(SIGTERM, at_ms(1000));
  for (int rank : {0, 2, 3}) end(record, rank, 1001, kTerminated);
  auto verdict = judge_failure(record, policy_for(4, 0, 2));
  CHECK(verdict.cause == Cause::kStoreTimeout);
  CHECK(verdict.summary ==
        "rank 1 (node 0) waited until the store's timeout for ranks 2, 3 (node 1), which never joined");
  CHECK(verdict.exit_code == 1);

  auto all_joined = all_living(1);
  all_joined.joined({kFirst, Rank{0}, at_ms(1)});
  end(all_joined, 0, 1000, {1}, waited);
  CHECK(judge_failure(all_joined, policy_for(1)).summary == "rank 0 waited for other ranks until the store's timeout");
}

TEST_CASE("the node is named when there are several") {
  auto record = all_living(4);
  end(record, 3, 20, {42});
  CHECK(judge_failure(record, policy_for(4, 0, 2)).summary == "rank 3 (node 1) exited with code 42");
}

TEST_CASE("the report always fits") {
  auto evidence = raised("torch.OutOfMemoryError: CUDA out of memory. " + std::string(500, 'x'), 10);
  for (int i = 0; i < 20; ++i) {
    evidence.last_lines.insert(evidence.last_lines.begin() + 1, {"  File \"a.py\", line 1, in f", "    g()"});
    evidence.last_lines.push_back("and more");
  }
  evidence.stderr_path = "/runs/x/rank-0.err";
  auto record = all_living(4);
  end(record, 0, 20, {1}, evidence);
  end(record, 1, 30, {1});
  record.stop(SIGTERM, at_ms(40));
  end(record, 2, 50, kTerminated);
  auto verdict = judge_failure(record, policy_for(4));
  CHECK(report_lines(verdict) == 12);
  CHECK(verdict.summary.size() <= 160);
  CHECK_FALSE(verdict.hint.empty());
  CHECK(verdict.log_path == "/runs/x/rank-0.err");
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

TEST_CASE("a stop by the user blames nobody") {
  auto record = all_living(3);
  end(record, 0, 500, {});
  record.stop(SIGINT, at_ms(1000));
  end(record, 1, 1001, {1});
  end(record, 2, 1002, {0, SIGINT});
  auto verdict = judge_stop(record, SIGINT, at_ms(1003));
  CHECK(verdict.cause == Cause::kStopped);
  CHECK(verdict.culprit == Rank{-1});
  CHECK(verdict.summary == "stopped by SIGINT");
  CHECK(verdict.exit_code == 130);
  CHECK(verdict.stopped == ranks({1, 2}));
}

TEST_CASE("lost output turns a good end into a failure") {
  auto verdict = judge_output(judge_success(all_living(1), at_ms(5)), "cannot write model.pt");
  CHECK(verdict.cause == Cause::kOutputFailed);
  CHECK(verdict.exit_code == 1);
  CHECK_THAT(verdict.summary, ContainsSubstring("cannot write model.pt"));
}

TEST_CASE("a program that cannot be executed after the stop is not what broke the generation") {
  GenerationRecord record(Generation{0}, 2);
  record.spawned({Generation{0}, Rank{0}, 100, at_ms(0)});
  record.exited({Generation{0}, Rank{0}, {1}, lost_peer(9), at_ms(10)});
  record.stop(SIGTERM, at_ms(10));
  record.spawn_failed({Generation{0}, Rank{1}, ENOENT, "cannot execute ./x", at_ms(20)});
  CHECK(judge_failure(record, policy_for(2)).culprit == Rank{0});
}

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

}  // namespace verdict_test
