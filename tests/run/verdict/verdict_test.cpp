#include "run/verdict/verdict.hpp"

#include <cerrno>

#include "catch.hpp"
#include "ended_ranks.hpp"
#include "run/scenario.hpp"

namespace verdict_test {

using namespace taas;
using namespace taas::run;
using ended_ranks::end;
using ended_ranks::kFirst;
using ended_ranks::kTerminated;

namespace {

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

TEST_CASE("an import that fails in a preloaded rank has a way out") {
  for (bool preloaded : {false, true}) {
    auto record = GenerationRecord(kFirst, 2);
    for (int rank : {0, 1}) record.spawned({kFirst, Rank{rank}, 100 + rank, at_ms(1), preloaded});
    end(record, 1, 20, {1}, raised("ImportError: import tracker before torch", 10));
    auto verdict = judge_failure(record, policy_for(2));
    CHECK((verdict.hint.find("--preload none") != verdict.hint.npos) == preloaded);
  }
}

TEST_CASE("a stop by the user blames nobody") {
  auto record = all_living(3);
  end(record, 0, 500, {});
  record.stop(SIGINT, at_ms(1000));
  end(record, 1, 1001, {1});
  end(record, 2, 1002, {0, SIGINT});
  auto verdict = judge_stop(record, policy_for(static_cast<int>(record.ranks().size())), SIGINT, at_ms(1003));
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

TEST_CASE("after a timeout the hint names who did not time out, and where to look") {
  const auto hint_of = [](std::initializer_list<int> timed_out) {
    auto record = all_living(4);
    auto evidence = raised("RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation", 10);
    for (int rank : timed_out) end(record, rank, 20, {1}, evidence);
    record.stop(SIGTERM, at_ms(1020));
    for (int rank = 0; rank < 4; ++rank) {
      Evidence stopped;
      stopped.stderr_path = "/r/" + std::to_string(rank);
      end(record, rank, 1030, kTerminated, stopped);
    }
    return judge_failure(record, policy_for(4)).hint;
  };
  CHECK(hint_of({0, 2, 3}) == "rank 1 did not time out: see what came last in /r/1");
  CHECK(hint_of({0}) == "ranks 1, 2, 3 did not time out: see what came last in /r/1, /r/2");
  CHECK_THAT(hint_of({0, 1, 2, 3}), ContainsSubstring("all ranks timed out"));

  auto wrapped = all_living(3);  // rank 2 says something else of its own timeout
  end(wrapped, 0, 20, {1}, raised("RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation", 10));
  end(wrapped, 2, 30, {1}, raised("RuntimeError: training failed", 30));
  wrapped.stop(SIGTERM, at_ms(30));
  end(wrapped, 1, 40, kTerminated);
  CHECK(judge_failure(wrapped, policy_for(3)).hint == "rank 0 timed out in a collective; rank 1 did not time out");

  auto late = all_living(2);  // it found its peer gone
  end(late, 0, 20, {1}, raised("RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation", 10));
  end(late, 1, 30, {1}, lost_peer(30));
  CHECK_THAT(judge_failure(late, policy_for(2)).hint, ContainsSubstring("rank 1 did not time out"));
}

TEST_CASE("a stopped run names the folder of its logs") {
  auto record = all_living(2);
  record.stop(SIGINT, at_ms(10));
  Evidence evidence;
  evidence.stderr_path = "/runs/x/generation-0/rank-0001.err";
  end(record, 1, 20, {}, evidence);
  evidence.stderr_path = "/runs/x/generation-0/rank-0000.err";
  end(record, 0, 20, kTerminated, evidence);
  CHECK(judge_stop(record, policy_for(2), SIGINT, at_ms(30)).log_path == "/runs/x/generation-0/");
}

}  // namespace verdict_test
