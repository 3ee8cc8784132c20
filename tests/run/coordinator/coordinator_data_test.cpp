#include "catch.hpp"
#include "run/coordinator_drive.hpp"

namespace coordinator_data_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

/// One node of ranks and two CPU machines.
CoordinatorPolicy with_data(const std::string& loader = "") {
  auto made = policy(1, 1, 1);
  made.data = {2, 1, {"alpha", "beta"}};
  made.loader = loader;
  return made;
}

Hello cpu(int order) {
  auto made = hello(order);
  made.role = AgentRole::kData;
  return made;
}

Ready ready(std::vector<std::uint16_t> ports) { return {0, std::move(ports)}; }

}  // namespace

TEST_CASE("CPU machines are not waited for and no part of the world") {
  Drive run(with_data());
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Ready{4711}, 1) == Strings{"0: probe"});
  CHECK(run.probed(0, 2) == Strings{"0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0"});
  CHECK(run.arrive(1, cpu(1), 10) == Strings{"1: welcome"});
  CHECK(run.said(1, ready({50, 51}), 20) == Strings{"0: workers 50 51", "1: workers 50 51"});
}

TEST_CASE("ranks that come after CPU machines are told of them") {
  Drive run(with_data());
  run.arrive(1, cpu(1), 0);
  CHECK(run.said(1, ready({50}), 1) == Strings{"1: workers 50"});
  run.arrive(0, hello(0), 2);
  CHECK(run.said(0, Ready{4711}, 3) == Strings{"0: workers 50", "0: probe"});
}

TEST_CASE("a lost CPU machine changes the list and nothing else") {
  Drive run(with_data());
  run.gather(1);
  for (int order : {1, 2}) {
    run.arrive(order, cpu(order), 10);
    run.said(order, ready({static_cast<std::uint16_t>(order)}), 10);
  }
  CHECK(run.left(1, 100) == Strings{"say CPU machine host1 was lost: its agent has ended; the others go on",
                                    "0: workers - 2", "2: workers - 2"});
  CHECK(run.deadline(1099) == Strings{});
  run.said(0, Heartbeat{1, at_ms(1000)}, 1000);
  run.said(2, Heartbeat{1, at_ms(1000)}, 1000);
  CHECK(run.deadline(1100) == Strings{"start agent 1"});
  run.arrive(7, cpu(1), 1500);
  CHECK(run.said(7, ready({9}), 1500) == Strings{"0: workers 9 2", "2: workers 9 2", "7: workers 9 2"});
}

TEST_CASE("a silent CPU machine is given up, also beside ranks in this process") {
  auto wanted = with_data();
  wanted.in_process = true;
  Drive run(wanted);
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Ready{4711}, 0) == Strings{"0: start 0 node 0 ranks 0-1 of 2 at 127.0.0.1"});
  run.arrive(1, cpu(1), 10);
  run.said(1, ready({50}), 20);
  auto lost = run.deadline(2520);
  CHECK(lost == Strings{"drop 1", "say CPU machine host1 was lost: no sign of life for 2.5 s; the others go on",
                        "0: workers -"});
}

TEST_CASE("a CPU machine that cannot take part is told of, and the run goes on") {
  Drive run(with_data());
  run.gather(1);
  CHECK(run.feed(HostFailed{2, "beta: no route", at_ms(5)}) == Strings{"say beta: no route", "0: workers "});
  run.arrive(1, cpu(1), 10);
  CHECK(run.said(1, Refused{"no Python there"}, 20) ==
        Strings{"say host1 makes no batches: no Python there", "1: dismissed 2 no Python there", "0: workers "});
}

TEST_CASE("CPU machines are dismissed with the run") {
  Drive run(with_data());
  run.gather(1);
  run.arrive(1, cpu(1), 10);
  for (int rank : {0, 1}) run.exited(0, 0, rank, {}, 20);
  run.gone(0, 0, 30);
  CHECK(run.said(0, OutputSettled{"", at_ms(40)}, 40) == Strings{"0: dismissed 0 ", "1: dismissed 0 ", "finish 0"});
}

TEST_CASE("with a loader ranks wait until all CPU machines have prepared it") {
  Drive run(with_data("data:train"));
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  CHECK(run.probed(0, 0) == Strings{"say preparing data:train before ranks start"});
  run.arrive(1, cpu(1), 10);
  CHECK(run.said(1, ready({50}), 20) == Strings{});  // how many workers share the loader is not known yet
  run.arrive(2, cpu(2), 30);
  CHECK(run.said(2, ready({60}), 40) == Strings{"0: workers 50 60", "1: workers 50 60", "2: workers 50 60"});
  run.said(1, DataPrepared{0, 10, 1000000000, true, at_ms(50)}, 50);
  CHECK(run.said(1, LoaderPrepared{}, 50) == Strings{});
  CHECK(run.said(2, DataPrepared{1, 5, 500000000, false, at_ms(11000)}, 11000) ==
        Strings{"say preparing data:train: 15 batches, 1.50 GB so far"});
  auto started = run.said(2, LoaderPrepared{}, 11010);
  CHECK(started ==
        Strings{"say prepared data:train: 15 batches, 1.50 GB", "0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0"});
}

TEST_CASE("a CPU machine that failed is not waited for") {
  Drive run(with_data("data:train"));
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  run.probed(0, 0);
  run.arrive(1, cpu(1), 10);
  run.said(1, ready({50}), 20);
  CHECK(run.feed(HostFailed{2, "beta: no route", at_ms(30)}) ==
        Strings{"say beta: no route", "0: workers 50", "1: workers 50"});
  CHECK(run.said(1, LoaderPrepared{}, 40).back() == "0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0");
}

TEST_CASE("a loader that cannot be prepared ends the run before ranks start") {
  Drive run(with_data("data:train"));
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  run.probed(0, 0);
  run.arrive(1, cpu(1), 10);
  auto decided = run.said(1, LoaderFailed{"--loader data:train: No module named 'data'"}, 20);
  CHECK(decided.front() == "report host1: --loader data:train: No module named 'data'");
  CHECK(decided.back() == "finish 2");
}

TEST_CASE("without any CPU machine a loader cannot be prepared") {
  Drive run(with_data("data:train"));
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  run.probed(0, 0);
  run.feed(HostFailed{1, "alpha: no route", at_ms(30)});
  auto decided = run.feed(HostFailed{2, "beta: no route", at_ms(40)});
  CHECK(decided.back() == "finish 2");
  CHECK(decided[2] == "report --loader data:train: no CPU machine is there to prepare it");
}

TEST_CASE("CPU machines that do not come within the time for nodes end a run with a loader") {
  auto wanted = with_data("data:train");
  wanted.gather_timeout = 10s;
  wanted.lost_after = 100s;
  Drive run(wanted);
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  run.probed(0, 0);
  CHECK(run.deadline(9999) == Strings{});
  auto decided = run.deadline(10000);
  CHECK(decided.back() == "finish 2");
  CHECK_THAT(fmt::format("{}", fmt::join(decided, "|")), ContainsSubstring("CPU machines are missing: alpha, beta"));
}

TEST_CASE("simulated CPU machines prepare a loader as one") {
  auto wanted = policy(1, 1, 1);
  wanted.in_process = true;
  wanted.loader = "data:train";
  Drive run(wanted);
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Ready{4711}, 0) == Strings{"say preparing data:train before ranks start"});
  run.said(0, DataPrepared{0, 10, 1000, true, at_ms(50)}, 50);
  CHECK(run.said(0, LoaderPrepared{}, 60).back() == "0: start 0 node 0 ranks 0-1 of 2 at 127.0.0.1");
}

}  // namespace coordinator_data_test
