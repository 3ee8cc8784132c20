#include "run/coordinator/coordinator.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/coordinator_drive.hpp"

namespace coordinator_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

TEST_CASE("two nodes from the first word to the last") {
  Drive run(policy(2, 2, 2));
  CHECK(run.arrive(5, hello(1), 1) == Strings{"5: welcome"});
  CHECK(run.said(5, Ready{4711}, 2) == Strings{});
  CHECK(run.arrive(6, hello(0), 3) == Strings{"6: welcome"});
  CHECK(run.said(6, Ready{4712}, 4) == Strings{"5: probe", "6: probe"});
  CHECK(run.probed(5, 5) == Strings{});
  CHECK(run.probed(6, 6) ==
        Strings{"5: start 0 node 1 ranks 2-3 of 4 at 10.0.0.0", "6: start 0 node 0 ranks 0-1 of 4 at 10.0.0.0"});
  for (int rank = 0; rank < 4; ++rank) {
    int agent = rank < 2 ? 6 : 5;
    run.said(agent, RankSpawned{Generation{0}, Rank{rank}, 1, at_ms(10)}, 10);
    auto decided = run.exited(agent, 0, rank, {}, 20);
    CHECK(decided == (rank == 3 ? Strings{"5: sweep", "6: sweep"} : Strings{}));
  }
  CHECK(run.gone(5, 0, 30) == Strings{});
  CHECK(run.gone(6, 0, 31) == Strings{"6: settle"});
  CHECK(run.said(6, OutputSettled{"", at_ms(40)}, 40) == Strings{"5: dismissed 0 ", "6: dismissed 0 ", "finish 0"});
}

namespace {

/// Of two nodes.
void end_well(Drive& run) {
  run.gather(2);
  for (int rank = 0; rank < 4; ++rank) run.exited(rank / 2, 0, rank, {}, 20);
  run.gone(0, 0, 30);
  run.gone(1, 0, 30);
  CHECK(run.said(0, OutputSettled{"", at_ms(40)}, 40) == Strings{"0: dismissed 0 ", "1: dismissed 0 ", "finish 0"});
}

}  // namespace

TEST_CASE("the coordinator goes when all nodes have answered how the run ended") {
  Drive run(policy(2, 2, 2));
  end_well(run);
  CHECK_FALSE(run.parted);
  run.said(0, Goodbye{}, 41);
  run.left(0, 42);
  CHECK_FALSE(run.parted);
  run.said(1, Goodbye{}, 45);
  CHECK(run.parted);
}

TEST_CASE("an agent whose link broke at the very end is told when it comes back") {
  Drive run(policy(2, 2, 2));
  end_well(run);
  run.said(0, Goodbye{}, 41);
  const bool former_link_is_known_to_be_broken = GENERATE(false, true);
  if (former_link_is_known_to_be_broken) run.left(1, 900);
  CHECK_FALSE(run.parted);
  CHECK(run.arrive(2, hello(1), 1500) == Strings{"2: dismissed 0 "});
  CHECK_FALSE(run.parted);
  run.said(2, Goodbye{}, 1510);
  CHECK(run.parted);
}

TEST_CASE("an agent that does not answer is waited for a few seconds") {
  Drive run(policy(2, 2, 2));
  end_well(run);
  run.said(0, Goodbye{}, 41);
  run.deadline(10039);
  CHECK_FALSE(run.parted);
  run.deadline(10040);
  CHECK(run.parted);
}

TEST_CASE("who wants the launcher to stop does not wait for silent agents") {
  Drive run(policy(2, 2, 2));
  end_well(run);
  run.feed(Event(SignalReceived{SIGTERM, at_ms(100)}));
  CHECK(run.parted);
}

TEST_CASE("who was turned away and has left is not waited for") {
  Drive run(policy(1, 1, 1));
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Refused{"train: not found"}, 10).back() == "finish 2");
  CHECK_FALSE(run.parted);
  run.left(0, 20);
  CHECK(run.parted);
}

TEST_CASE("ranks are told each other's servers, where all nodes hold ports for them") {
  Drive run(policy(2, 2, 2));
  auto two_networks = hello(1);
  two_networks.addresses = {"192.168.0.1", "10.0.0.1"};
  run.arrive(5, two_networks, 1);
  run.arrive(6, hello(0), 1);
  run.said(5, Ready{4711, {}, {71, 72}}, 2);
  run.said(6, Ready{4712, {}, {81, 82, 83}}, 2);
  run.probed(5, 5);
  auto servers = std::string(" servers 10.0.0.0:81,10.0.0.0:82,10.0.0.1:71,10.0.0.1:72");
  CHECK(run.probed(6, 6) == Strings{"5: start 0 node 1 ranks 2-3 of 4 at 10.0.0.0" + servers,
                                    "6: start 0 node 0 ranks 0-1 of 4 at 10.0.0.0" + servers});
}

TEST_CASE("no servers are told when a node holds too few ports") {
  Drive run(policy(1, 1, 1));
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711, {}, {71}}, 1);
  CHECK(run.probed(0, 0) == Strings{"0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0"});
}

TEST_CASE("a heartbeat is answered") {
  Drive run(policy(2, 2, 2));
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Heartbeat{1, at_ms(5)}, 250) == Strings{"0: echo"});
}

TEST_CASE("a second agent for the same place is sent away") {
  Drive run(policy(2, 2, 2));
  run.arrive(0, hello(0), 0);
  auto other = hello(0);
  other.hostname = other.instance = "elsewhere";
  CHECK(run.arrive(1, other, 10) ==
        Strings{"say elsewhere was sent away: host0 is node 0 already", "1: dismissed 2 host0 is node 0 already"});
}

TEST_CASE("hosts that fail one after the other are all in the report, and nowhere else") {
  auto wanted = policy(3, 3, 3);
  wanted.answer_patience = 10s;
  Drive run(wanted);
  CHECK(run.feed(HostFailed{2, "host2: no route", at_ms(10)}) == Strings{});
  CHECK(run.feed(HostFailed{0, "host0: no route", at_ms(20)}) == Strings{});
  auto decided = run.feed(HostFailed{1, "host1: no route", at_ms(30)});
  CHECK(decided.front() == "report 3 hosts cannot take part: host0: no route; host1: no route; host2: no route");
}

TEST_CASE("nodes that count for themselves have as many ranks as they say") {
  auto wanted = policy(3, 3, 3);
  auto of_own = [](int order, int ranks) {
    auto own = hello(order);
    own.ranks = ranks;
    return own;
  };
  for (bool own : {true, false}) {
    wanted.nodes_count_themselves = own;
    Drive run(wanted);
    run.arrive(0, hello(0), 0);
    run.arrive(1, of_own(1, 4), 0);
    run.arrive(2, of_own(2, 1), 0);
    for (int i : {0, 1, 2}) run.said(i, Ready{4711}, 0);
    for (int i : {0, 1}) run.probed(i, 10);
    auto decided = run.probed(2, 10);
    auto text = fmt::format("{}", fmt::join(decided, "\n"));
    CAPTURE(text);
    CHECK((text.find("node 1 ranks 2-5 of 7") != text.npos) == own);
    CHECK((text.find("node 2 ranks 6-6 of 7") != text.npos) == own);
    CHECK((text.find("node 2 ranks 4-5 of 6") != text.npos) == !own);
  }
}

TEST_CASE("another version is sent away with both named, and ends a run that cannot do without") {
  Drive run(policy(1, 1, 1));
  auto other = hello(0);
  other.version = "0.9";
  auto why = "it runs taas-run 0.9 (protocol 2), this run 1.0 (protocol 2): install the same on all nodes";
  CHECK(run.arrive(0, other, 10) == Strings{fmt::format("0: dismissed 2 {}", why),
                                            fmt::format("report host0 cannot take part: {}", why), "finish 2"});
}

TEST_CASE("a node that refuses ends a run that cannot do without it") {
  Drive run(policy(2, 2, 2));
  run.arrive(0, hello(0), 0);
  run.arrive(1, hello(1), 0);
  CHECK(run.said(1, Refused{"train: not found"}, 10) == Strings{"1: dismissed 2 train: not found",
                                                                "report host1 cannot take part: train: not found",
                                                                "0: dismissed 2 ", "finish 2"});
}

TEST_CASE("a host that cannot be reached is told, and replaced") {
  Drive run(policy(2, 2, 3));
  CHECK(run.feed(HostFailed{1, "host1: permission denied", at_ms(10)}) == Strings{"say host1: permission denied"});
  run.arrive(0, hello(0), 20);
  run.arrive(2, hello(2), 20);
  run.said(0, Ready{4711}, 30);
  CHECK(run.said(2, Ready{4711}, 30) == Strings{"0: probe", "2: probe"});
}

TEST_CASE("nodes that do not reach each other are named") {
  Drive run(policy(2, 2, 2));
  for (int i : {0, 1}) run.arrive(i, hello(i), 0);
  for (int i : {0, 1}) run.said(i, Ready{4711}, 0);
  run.probed(0, 10);
  auto decided = run.said(1, AddressesReached{{}, 1}, 20);
  CHECK(decided.front() == "report host1 cannot reach host0: no connection to port 4711 of 10.0.0.0");
  CHECK(decided.back() == "finish 1");
}

TEST_CASE("a request to write a checkpoint goes to every agent once") {
  auto wanted = policy(2, 2, 2);
  wanted.run.preempt_signals = {SIGUSR1};
  Drive run(wanted);
  run.gather(2);
  auto decided = run.said(1, Signalled{SIGUSR1}, 100);  // srun tells agents too
  CHECK(decided == Strings{"say SIGUSR1: the run is to end soon; ranks are told to write a checkpoint",
                           "0: checkpoint 10", "1: checkpoint 10"});
  CHECK(run.feed(Event(SignalReceived{SIGUSR1, at_ms(110)})) == Strings{});
}

TEST_CASE("a stop that reaches agents as well is one wish") {
  Drive run(policy(1, 1, 1));
  run.gather(1);
  run.said(0, RankSpawned{Generation{0}, Rank{0}, 1, at_ms(5)}, 5);
  CHECK(run.feed(Event(SignalReceived{SIGINT, at_ms(10)})).back() == "0: signal 2 to 1");
  CHECK(run.said(0, Signalled{SIGINT}, 20) == Strings{});
}

TEST_CASE("what an agent says of ranks that are not its own is not believed") {
  Drive run(policy(2, 2, 2));
  run.gather(2);
  CHECK(run.exited(0, 0, 2, {1}, 10) == Strings{});
  CHECK(run.exited(0, 7, 0, {1}, 10) == Strings{});
  CHECK(run.exited(9, 0, 0, {1}, 10) == Strings{});
}

TEST_CASE("in one process an agent plays all nodes, without heartbeats or probing") {
  auto wanted = policy(2, 2, 1);
  wanted.in_process = true;
  Drive run(wanted);
  auto all = hello(-1);
  all.plays = 2;
  CHECK(run.arrive(0, all, 0) == Strings{"0: welcome"});
  CHECK(run.said(0, Ready{4711}, 1) == Strings{"0: start 0 node 0 ranks 0-1 node 1 ranks 2-3 of 4 at 127.0.0.1"});
  CHECK(run.deadline(100000) == Strings{});
}

}  // namespace coordinator_test
