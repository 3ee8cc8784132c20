#include "run/coordinator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "catch.hpp"
#include "scenario.hpp"

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

using Strings = std::vector<std::string>;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string brief(const StartRanks& m) {
  Strings shares;
  for (const auto& share : m.shares) {
    auto last = share.first_rank.value + share.local_world_size - 1;
    shares.push_back(fmt::format("node {} ranks {}-{}", share.node.value, share.first_rank.value, last));
  }
  return fmt::format("start {} {} of {} at {}", m.generation.value, fmt::join(shares, " "), m.world_size,
                     m.master_addr);
}

std::string brief(const CoordinatorMessage& message) {
  return std::visit(
      Overloaded{[](const Welcome&) { return std::string("welcome"); },
                 [](const Dismissed& m) { return fmt::format("dismissed {} {}", m.exit_code, m.reason); },
                 [](const ProbeAddresses&) { return std::string("probe"); },
                 [](const StartRanks& m) { return brief(m); },
                 [](const SignalRanks& m) { return fmt::format("signal {} to {}", m.signal, m.ranks.size()); },
                 [](const KillGeneration&) { return std::string("kill"); },
                 [](const SweepGeneration&) { return std::string("sweep"); },
                 [](const HeartbeatEcho&) { return std::string("echo"); },
                 [](const Settle& m) { return std::string(m.publish ? "settle" : "settle nothing"); },
                 [](const Abandon&) { return std::string("abandon"); },
                 [](const RequestStop& m) { return fmt::format("checkpoint {}", m.signal); },
                 [](const HoldOutput&) { return std::string("hold"); }},
      message);
}

std::string brief(const Action& action) {
  return std::visit(Overloaded{[](const Notify& a) { return "say " + a.text; },
                               [](const ReportFailure& a) { return "report " + a.verdict.summary; },
                               [](const Finish& a) { return fmt::format("finish {}", a.verdict.exit_code); },
                               [](const auto&) { return std::string(); }},
                    action);
}

std::string brief(const CoordinatorAction& action) {
  return std::visit(Overloaded{[](const Happened&) { return std::string(); }, [](const Action& a) { return brief(a); },
                               [](const Tell& a) { return fmt::format("{}: {}", a.agent.value, brief(a.message)); },
                               [](const Drop& a) { return fmt::format("drop {}", a.agent.value); },
                               [](const StartAgent& a) { return fmt::format("start agent {}", a.order); }},
                    action);
}

CoordinatorPolicy policy(int nodes, int min_nodes, int expected) {
  CoordinatorPolicy made;
  made.ranks_on_node.assign(static_cast<std::size_t>(nodes), 2);
  made.min_nodes = min_nodes;
  made.expected_agents = expected;
  made.version = "1.0";
  return made;
}

Hello hello(int order) {
  Hello made;
  made.version = "1.0";
  made.hostname = "host" + std::to_string(order);
  made.instance = made.hostname;
  made.order = order;
  made.addresses = {"10.0.0." + std::to_string(order)};
  return made;
}

/// A coordinator and what it decides; journal, deadlines and the like are left out.
class Drive {
 public:
  explicit Drive(CoordinatorPolicy policy) : coordinator_(std::move(policy)) { feed(Event(RunStarted{at_ms(0)})); }

  Strings feed(const CoordinatorEvent& event) {
    Strings decided;
    for (const auto& action : coordinator_.handle(event)) {
      if (auto text = brief(action); !text.empty()) decided.push_back(text);
    }
    return decided;
  }
  Strings arrive(int agent, Hello who, long when) {
    return feed(AgentArrived{AgentId{agent}, std::move(who), at_ms(when)});
  }
  Strings said(int agent, AgentMessage message, long when) {
    return feed(AgentSaid{AgentId{agent}, std::move(message), at_ms(when)});
  }
  Strings probed(int agent, long when) { return said(agent, AddressesReached{{"10.0.0.0", "10.0.0.9"}, 1}, when); }
  Strings exited(int agent, int generation, int rank, ExitStatus status, long when) {
    return said(agent, RankExited{Generation{generation}, Rank{rank}, status, {}, at_ms(when)}, when);
  }
  Strings gone(int agent, int generation, long when) {
    return said(agent, GenerationGone{Generation{generation}, at_ms(when)}, when);
  }
  Strings left(int agent, long when) {
    return feed(AgentLeft{AgentId{agent}, "its agent has ended", true, at_ms(when)});
  }
  Strings deadline(long when) { return feed(Event(DeadlineReached{at_ms(when)})); }
  /// Agents 0..count-1 on hosts 0..count-1, up to where ranks start.
  void gather(int count, long when = 0) {
    for (int i = 0; i < count; ++i) {
      arrive(i, hello(i), when);
      said(i, Ready{4711}, when);
    }
    for (int i = 0; i < count; ++i) probed(i, when);
  }

 private:
  Coordinator coordinator_;
};

const ExitStatus kTerminated{0, 15};

}  // namespace

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

TEST_CASE("a heartbeat is answered") {
  Drive run(policy(2, 2, 2));
  run.arrive(0, hello(0), 0);
  CHECK(run.said(0, Heartbeat{1, at_ms(5)}, 250) == Strings{"0: echo"});
}

TEST_CASE("a node whose agent dies is replaced by a spare, when nothing can live there any more") {
  Drive run(policy(2, 2, 3));
  run.gather(3);
  CHECK(run.left(1, 1000) == Strings{});
  for (int rank : {0, 1}) run.said(0, RankSpawned{Generation{0}, Rank{rank}, 1, at_ms(1000)}, 1000);
  run.exited(0, 0, 0, kTerminated, 1010);
  CHECK(run.exited(0, 0, 1, kTerminated, 1010) == Strings{"0: sweep"});
  CHECK(run.gone(0, 0, 1020) == Strings{});
  CHECK(run.deadline(1499) == Strings{});
  CHECK(run.deadline(1500) == Strings{"report node 1 (host1) was lost: its agent has ended", "0: abandon", "2: probe"});
  auto started = run.probed(2, 1510);
  CHECK(started ==
        Strings{"0: start 1 node 0 ranks 0-1 of 4 at 10.0.0.0", "2: start 1 node 1 ranks 2-3 of 4 at 10.0.0.0"});
}

TEST_CASE("a silent node is given up, and without a replacement the run ends") {
  Drive run(policy(2, 2, 2));
  run.gather(2);
  run.said(0, Heartbeat{1, at_ms(2400)}, 2400);
  CHECK(run.deadline(2499) == Strings{});
  CHECK(run.deadline(2500) == Strings{"drop 1"});
  run.exited(0, 0, 0, kTerminated, 2510);
  CHECK(run.exited(0, 0, 1, kTerminated, 2510) == Strings{"0: sweep"});
  CHECK(run.gone(0, 0, 2520) ==
        Strings{"report node 1 (host1) was lost: no sign of life for 2.5 s", "0: settle nothing"});
  CHECK(run.said(0, OutputSettled{"", at_ms(2530)}, 2530) == Strings{"0: dismissed 1 ", "finish 1"});
}

TEST_CASE("an elastic run goes on with fewer nodes") {
  Drive run(policy(3, 2, 3));
  run.gather(3);
  run.left(0, 1000);
  for (int rank : {2, 3}) run.exited(1, 0, rank, kTerminated, 1010);
  for (int rank : {4, 5}) run.exited(2, 0, rank, kTerminated, 1010);
  run.gone(1, 0, 1020);
  run.gone(2, 0, 1020);
  CHECK(run.deadline(1500) == Strings{"report node 0 (host0) was lost: its agent has ended", "1: probe", "2: probe"});
  run.said(1, AddressesReached{{"10.0.0.1"}, 2}, 1510);
  CHECK(run.said(2, AddressesReached{{"10.0.0.1"}, 2}, 1510) ==
        Strings{"1: start 1 node 0 ranks 0-1 of 4 at 10.0.0.1", "2: start 1 node 1 ranks 2-3 of 4 at 10.0.0.1"});
}

TEST_CASE("an agent that connects again takes the place of its former connection") {
  auto wanted = policy(1, 1, 1);
  wanted.run.max_restarts = 1;
  Drive run(wanted);
  run.gather(1);
  CHECK(run.arrive(7, hello(0), 500) ==
        Strings{"drop 0", "report node 0 (host0) was lost: it lost its connection", "7: welcome"});
  CHECK(run.gone(0, 0, 510) == Strings{});  // not heard any more
}

TEST_CASE("a second agent for the same place is sent away") {
  Drive run(policy(2, 2, 2));
  run.arrive(0, hello(0), 0);
  auto other = hello(0);
  other.hostname = other.instance = "elsewhere";
  CHECK(run.arrive(1, other, 10) ==
        Strings{"say elsewhere was sent away: host0 is node 0 already", "1: dismissed 2 host0 is node 0 already"});
}

TEST_CASE("another version is sent away with both named, and ends a run that cannot do without") {
  Drive run(policy(1, 1, 1));
  auto other = hello(0);
  other.version = "0.9";
  auto why = "it runs taas-run 0.9 (protocol 1), this run 1.0 (protocol 1): install the same on all nodes";
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

TEST_CASE("output on a node that is lost is not waited for") {
  Drive run(policy(1, 1, 1));
  run.gather(1);
  run.exited(0, 0, 0, {}, 100);
  run.exited(0, 0, 1, {}, 100);
  CHECK(run.gone(0, 0, 110) == Strings{"0: settle"});
  CHECK(run.left(0, 120) == Strings{"finish 1"});
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

TEST_CASE("a lost host is started again") {
  Drive run(policy(1, 1, 2));
  run.gather(2);
  run.left(1, 1000);
  CHECK(run.deadline(2000) == Strings{"start agent 1"});
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
