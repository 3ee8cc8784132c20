#include "run/looks/standing.hpp"

#include <catch.hpp>

#include "run/looks/looks.hpp"

namespace standing_test {

using namespace taas;
using namespace taas::run;
using namespace taas::run::made;

namespace {

Policy four_ranks() {
  Policy policy;
  policy.world_size = 4;
  policy.node_of_rank.assign(4, NodeIndex{0});
  return policy;
}

Standing of(const std::vector<RankStanding>& ranks, const std::vector<Rank>& ended = {}, bool joined = true) {
  return assess(ranks, ended, joined, four_ranks());
}

RankStanding waits(int rank, const SeenFrame& user = kUser) { return still(look(rank, thread(in_all_reduce(user)))); }
RankStanding blocked(int rank) { return still(look(rank, thread({{"load", "/home/me/data.py", 41}, kMain}))); }

const SeenFrame kLoad{"load", "/home/me/data.py", 41};

}  // namespace

TEST_CASE("which files are the user's") {
  CHECK(is_own_file("/home/me/train.py"));
  CHECK(is_own_file("train.py"));
  CHECK_FALSE(is_own_file("/usr/lib/python3.11/threading.py"));
  CHECK_FALSE(is_own_file("/venv/lib/python3.11/site-packages/torch/nn/functional.py"));
  CHECK_FALSE(is_own_file("<frozen runpy>"));
  CHECK_FALSE(is_own_file("<string>"));
}

TEST_CASE("what a rank does, by two looks") {
  struct Case {
    const char* name;
    RankLook before, now;
    Activity activity;
    std::string doing, place;
  };
  const auto lock = look(0, thread({kLoad, kMain}));
  const auto reduce = look(0, thread(in_all_reduce()));
  const auto asleep = look(0, thread({kLoad, kMain}, Wait::kTime, "a time to pass"));
  const auto runs = look(0, thread({kLoad, kMain}, Wait::kNothing));
  auto other_line = later(lock);
  other_line.processes[0].threads[0].frames[0].line = 42;
  auto holds = asleep;
  holds.processes[0].threads[0].holds_gil = true;
  const auto debugs =
      look(0, thread({{"cmdloop", "/usr/lib/python3.11/pdb.py", 1}, kLoad}, Wait::kInput, "its standard input"));
  const auto data =
      look(0, thread({{"RemoteStream.next", "/venv/lib/python3.11/site-packages/taas/delivery/remote.py", 1}, kLoad}));
  const auto input = look(0, thread({kLoad}, Wait::kInput, "its standard input"));
  const auto stopped = look(0, thread(in_all_reduce(), Wait::kStopped, "a signal, until SIGCONT"));
  const auto backward = look(0, thread(in_library("_engine_run_backward", "autograd/graph.py")));
  const auto queue = look(0, thread({{"wait", "/usr/lib/python3.11/threading.py", 1},
                                     {"Queue.get", "/usr/lib/python3.11/queue.py", 2},
                                     kLoad}));
  const std::vector<Case> cases{
      {"a lock", lock, later(lock), Activity::kBlocked, "waits for a lock or another thread", "load (data.py:41)"},
      {"a queue", queue, later(queue), Activity::kBlocked, "waits in queue.Queue.get", "load (data.py:41)"},
      {"a collective", reduce, later(reduce), Activity::kWaits, "waits", "all_reduce (train.py:88)"},
      {"a spinning collective", reduce, later(reduce, 1.0), Activity::kWaits, "waits", "all_reduce (train.py:88)"},
      {"backward", backward, later(backward), Activity::kWaits, "waits", "backward (train.py:88)"},
      {"stopped in a collective", stopped, later(stopped), Activity::kBlocked, "is stopped by a signal, until SIGCONT",
       "all_reduce (train.py:88)"},
      {"computes", runs, later(runs, 1.0), Activity::kBusy, "is busy", "load (data.py:41)"},
      {"starves in the queue", runs, later(runs, 0.6), Activity::kBusy, "is busy", "load (data.py:41)"},
      {"saves", lock, later(lock, 0.1, 210e6), Activity::kBusy, "goes on, reads and writes 210 MB/s",
       "load (data.py:41)"},
      {"gets on", lock, other_line, Activity::kBusy, "goes on", "load (data.py:42)"},
      {"sleeps", asleep, later(asleep), Activity::kPurposely, "sleeps", "load (data.py:41)"},
      {"polls once a second", asleep, later(asleep, 0, 0, 1), Activity::kPurposely, "sleeps", "load (data.py:41)"},
      {"sleeps with the GIL", holds, later(holds), Activity::kBlocked, "holds the GIL in C code, asleep",
       "load (data.py:41)"},
      {"debugs", debugs, later(debugs), Activity::kPurposely, "is in a debugger", "load (data.py:41)"},
      {"data", data, later(data, 0, 0, 3), Activity::kPurposely, "waits for its data", "load (data.py:41)"},
      {"input", input, later(input), Activity::kPurposely, "waits for its standard input", "load (data.py:41)"},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    const auto standing = judge(one.before, one.now);
    CHECK(static_cast<int>(standing.activity) == static_cast<int>(one.activity));
    CHECK(standing.doing == one.doing);
    CHECK(standing.place == one.place);
  }
}

TEST_CASE("what a rank calls its functions does nothing to a terminal") {
  const auto seen = look(0, thread({{"a\x1b[31mb", "/home/me/c\nd.py", 3}}));
  CHECK(still(seen).place == "a\\x1b[31mb (c\\nd.py:3)");
}

TEST_CASE("what is behind the main thread's wait") {
  auto seen = look(0, thread({kLoad, kMain}));
  auto& threads = seen.processes[0].threads;
  SECTION("another thread has the GIL") {
    threads.push_back(thread({{"sync", "/home/me/log.py", 12}}, Wait::kTime, "a time to pass"));
    threads.back().holds_gil = true;
    threads.back().name = "logger";
    threads.back().tid = 2;
    CHECK(still(seen).doing == "waits for the GIL, which thread logger holds at log.py:12");
    const auto waking = judge(seen, later(seen, 0.01, 0, 200));  // as the interpreter does while it waits for it
    CHECK(waking.activity == Activity::kBlocked);
    CHECK(waking.doing == "waits for the GIL, which thread logger holds at log.py:12");
    auto before = seen;
    before.processes[0].threads[1].holds_gil = false;
    CHECK(judge(before, later(seen, 0.01, 0, 200)).doing == "goes on");
  }
  SECTION("a thread that may carry what it waits for") {
    threads.push_back(thread({{"send", "/home/me/upload.py", 5}}, Wait::kNetwork, "a peer on the network"));
    CHECK(static_cast<int>(still(seen).activity) == static_cast<int>(Activity::kPurposely));
  }
  SECTION("the end of a thread") {
    threads[0].frames = {{"_shutdown", "/usr/lib/python3.11/threading.py", 1590}};
    threads.push_back(thread({{"write", "/home/me/log.py", 14}}));
    const auto standing = still(seen);
    CHECK(standing.doing ==
          "waits at its end for another thread, which waits for a lock or another thread at log.py:14");
    CHECK(standing.line == "log.py:14");
    CHECK(standing.hard);
  }
  SECTION("a worker of its DataLoader") {
    threads[0] = thread(in_library("_try_get_data", "utils/data/dataloader.py"), Wait::kEvents, "an event");
    SeenProcess worker;
    worker.pid = 812;
    worker.threads.push_back(thread({{"__getitem__", "/home/me/data.py", 9}}));
    seen.processes.push_back(worker);
    const auto standing = still(seen);
    CHECK(standing.doing ==
          "waits for its DataLoader's worker 812, which waits for a lock or another thread at data.py:9");
    CHECK(static_cast<int>(standing.activity) == static_cast<int>(Activity::kBlocked));
    CHECK(standing.place == "step (train.py:88)");
  }
  SECTION("a child") {
    threads[0] = thread({kLoad}, Wait::kChild, "process 900 to end");
    const auto standing = still(seen);
    CHECK(standing.doing == "waits for process 900 to end");
    CHECK(static_cast<int>(standing.activity) == static_cast<int>(Activity::kPurposely));
  }
}

TEST_CASE("what a rank of C++ does") {
  const SeenFrame step{"Trainer::step", "/home/me/trainer.cpp", 40}, main{"main", "/home/me/trainer.cpp", 60};
  const auto in = [&](const std::vector<SeenFrame>& library, Wait wait = Wait::kLock) {
    auto frames = library;
    frames.insert(frames.end(), {step, main});
    return still(look(2, thread(frames, wait)));
  };
  const SeenFrame futex{"__futex_abstimed_wait_common", "<libc.so.6>", 0};
  SECTION("it waits in a collective of libtaas") {
    const auto rank = in({futex,
                          {"c10d::ProcessGroupGloo::AsyncWork::wait", "<libtorch_cpu.so>", 0},
                          {"taas::Work::wait", "<trainer>", 0},
                          {"taas::all_reduce", "<trainer>", 0}});
    CHECK(rank.activity == Activity::kWaits);
    CHECK(rank.place == "all_reduce (trainer.cpp:40)");
  }
  SECTION("or of torch, which its backward pass calls") {
    const auto rank =
        in({futex, {"c10d::Work::wait", "<libtorch_cpu.so>", 0}, {"at::Tensor::backward", "<trainer>", 0}});
    CHECK(rank.activity == Activity::kWaits);
    CHECK(rank.place == "backward (trainer.cpp:40)");
  }
  SECTION("it waits for its data, or its disk, and not for others") {
    CHECK(in({futex, {"taas::DataLoader::next", "<trainer>", 0}}).doing == "waits for its data");
    CHECK(in({futex, {"taas::save_checkpoint", "<trainer>", 0}}).activity == Activity::kBlocked);
  }
  SECTION("a lock") {
    const auto rank = in({futex, {"pthread_mutex_lock", "<libc.so.6>", 0}});
    CHECK(rank.activity == Activity::kBlocked);
    CHECK(rank.place == "Trainer::step (trainer.cpp:40)");
    CHECK(rank.doing == "waits in pthread_mutex_lock");
  }
  SECTION("without debug information") {
    const auto rank = still(look(2, thread({futex, {"Trainer::step", "/home/me/trainer", 0}})));
    CHECK(rank.place == "Trainer::step (trainer)");
    CHECK(rank.line == "trainer");
  }
}

TEST_CASE("the function that holds the GIL is named") {
  auto holder = thread({{"tokenize", "<libtokens.so>", 0}, kUser}, Wait::kTime, "a time to pass");
  holder.holds_gil = true;
  CHECK(still(look(2, holder)).doing == "holds the GIL in C code (tokenize of libtokens.so), asleep");
  holder.frames.front().function.clear();
  CHECK(still(look(2, holder)).doing == "holds the GIL in C code (libtokens.so), asleep");
}

TEST_CASE("which ranks the others wait for") {
  const auto hungry = [](int rank) {
    return still(look(
        rank, thread({{"__next__", "/venv/lib/python3.11/site-packages/taas/delivery/stream.py", 9}, kUser, kMain})));
  };
  const auto asleep = still(look(2, thread({kLoad}, Wait::kTime, "a time to pass")));
  const auto busy_look = look(2, thread({kLoad}, Wait::kNothing));
  const auto busy = judge(busy_look, later(busy_look, 1.0));
  const SeenFrame odd{"odd", "/home/me/train.py", 90};
  struct Case {
    const char* name;
    Standing standing;
    Standing::Kind kind;
    std::string text;
  };
  const std::vector<Case> cases{
      {"a lock", of({waits(0), waits(1), blocked(2), waits(3)}), Standing::Kind::kStuck,
       "ranks 0, 1, 3 wait in all_reduce (train.py:88) for rank 2 in load (data.py:41), which waits for a lock or "
       "another thread"},
      {"two locks", of({waits(0), waits(1), blocked(2), blocked(3)}), Standing::Kind::kStuck,
       "ranks 0, 1 wait in all_reduce (train.py:88) for ranks 2, 3 in load (data.py:41); rank 2 waits for a lock or "
       "another thread"},
      {"another line", of({waits(0), waits(1), waits(2, odd), waits(3)}), Standing::Kind::kStuck,
       "rank 2 waits in all_reduce (train.py:90), and ranks 0, 1, 3 in all_reduce (train.py:88)"},
      {"all at one line", of({waits(0), waits(1), waits(2), waits(3)}), Standing::Kind::kStuck,
       "ranks 0, 1, 2, 3 wait in all_reduce (train.py:88) for each other: are their tensors and groups the same, does "
       "the "
       "network carry their data?"},
      {"ended", of({waits(1)}, {Rank{0}, Rank{2}, Rank{3}}), Standing::Kind::kStuck,
       "rank 1 waits in all_reduce (train.py:88) for ranks 0, 2, 3, which have ended well"},
      {"a long computation", of({waits(0), waits(1), busy, waits(3)}), Standing::Kind::kWaiting,
       "ranks 0, 1, 3 wait in all_reduce (train.py:88) for rank 2 in load (data.py:41), which is busy"},
      {"sleep", of({waits(0), waits(1), asleep, waits(3)}), Standing::Kind::kWaiting,
       "ranks 0, 1, 3 wait in all_reduce (train.py:88) for rank 2 in load (data.py:41), which sleeps"},
      {"most are at a line that tells nothing", of({blocked(0), blocked(1), asleep, blocked(3)}),
       Standing::Kind::kWaiting,
       "ranks 0, 1, 3 wait in load (data.py:41) for rank 2 in load (data.py:41), which sleeps"},
      {"C++, of which one sleeps",
       of({still(look(0, thread({}))), still(look(1, thread({}))),
           still(look(2, thread({}, Wait::kTime, "a time to pass")))}),
       Standing::Kind::kWaiting, "ranks 0, 1 wait for rank 2, which sleeps"},
      {"all wait for their data", of({hungry(0), hungry(1)}), Standing::Kind::kWaiting,
       "ranks 0, 1 wait in step (train.py:88) for their data"},
      {"some wait for their data, and others get on", of({hungry(0), busy}), Standing::Kind::kMoves, ""},
      {"one that waits for a lock", of({busy, blocked(0)}), Standing::Kind::kMoves, ""},
      {"all sleep", of({asleep}), Standing::Kind::kMoves, ""},
      {"a lock of a program that never joined", of({blocked(0)}, {}, false), Standing::Kind::kMoves, ""},
      {"a lock of one that has", of({blocked(0)}), Standing::Kind::kStuck,
       "rank 0 in load (data.py:41), which waits for a lock or another thread"},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    CHECK(static_cast<int>(one.standing.kind) == static_cast<int>(one.kind));
    CHECK(one.standing.text() == one.text);
  }
  CHECK(of({waits(0), waits(1), busy, waits(3)}).text(std::chrono::seconds(130)) ==
        "ranks 0, 1, 3 have waited 2 min 10 s in all_reduce (train.py:88) for rank 2 in load (data.py:41), which is "
        "busy");
}

TEST_CASE("a data worker is named that keeps a rank waiting") {
  const SeenFrame fetch{"fetch", "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", 5};
  const SeenFrame serve{"serve", "/venv/lib/python3.11/site-packages/taas/worker/serving.py", 6};
  auto worker = look(-1, thread({serve}));
  worker.data_worker = "data worker 1";
  CHECK_FALSE(judge_data_worker(worker, later(worker)));   // it has nothing to do
  worker.processes[0].threads[0].frames = {serve, kMain};  // the program that it has loaded is below
  CHECK_FALSE(judge_data_worker(worker, later(worker)));
  worker.processes[0].threads[0].frames = {kLoad, fetch, serve, kMain};
  const auto held = judge_data_worker(worker, later(worker));
  REQUIRE(held);
  CHECK(held->text == "data worker 1 waits for a lock or another thread at data.py:41");
  CHECK(held->blocked);
  const auto busy = judge_data_worker(worker, later(worker, 1.0));
  REQUIRE(busy);
  CHECK(busy->text == "data worker 1 is busy at data.py:41");
  CHECK_FALSE(busy->blocked);

  const auto needs =
      still(look(2, thread({{"next", "/venv/lib/python3.11/site-packages/taas/delivery/remote.py", 1}, kUser})));
  std::vector<RankStanding> ranks{waits(0), waits(1), needs, waits(3)};
  explain_wait_for_data(ranks, {*busy});
  CHECK(static_cast<int>(of(ranks).kind) == static_cast<int>(Standing::Kind::kWaiting));
  explain_wait_for_data(ranks, {*busy, *held});
  const auto standing = of(ranks);
  CHECK(static_cast<int>(standing.kind) == static_cast<int>(Standing::Kind::kStuck));
  CHECK(standing.text() ==
        "ranks 0, 1, 3 wait in all_reduce (train.py:88) for rank 2 in step (train.py:88), which waits for its data: "
        "data worker 1 "
        "waits for a lock or another thread at data.py:41");
}

TEST_CASE("a collective that transfers is no standstill") {
  std::vector<RankStanding> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const auto seen = look(rank, thread(in_all_reduce()));
    ranks.push_back(judge(seen, later(seen, 0.3)));
  }
  CHECK(static_cast<int>(of(ranks).kind) == static_cast<int>(Standing::Kind::kMoves));
}

TEST_CASE("times and many ranks in words") {
  using namespace std::chrono_literals;
  CHECK(in_words(45s) == "45 s");
  CHECK(in_words(130s) == "2 min 10 s");
  CHECK(in_words(600s) == "10 min");
  CHECK(in_words(3h + 5min) == "3 h 5 min");
  CHECK(in_words(2h) == "2 h");
  std::vector<Rank> ranks;
  for (int rank = 0; rank < 32; ++rank) {
    if (rank != 17) ranks.push_back(Rank{rank});
  }
  CHECK(name_many(ranks, four_ranks()) == "ranks 0-16, 18-31");
  CHECK(name_many({Rank{3}}, four_ranks()) == "rank 3");
}

}  // namespace standing_test
