#include "run/agent/agent.hpp"

#include <fmt/format.h>

#include <csignal>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace agent_test {

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

std::string brief(const AgentMessage& message) {
  return std::visit(Overloaded{[](const Hello&) { return std::string("hello"); },
                               [](const Heartbeat& m) { return fmt::format("heartbeat {}", m.number); },
                               [](const GenerationGone& m) { return fmt::format("gone {}", m.generation.value); },
                               [](const RankExited& m) { return fmt::format("exited {}", m.rank.value); },
                               [](const Signalled& m) { return fmt::format("signalled {}", m.signal); },
                               [](const Goodbye&) { return std::string("goodbye"); },
                               [](const auto&) { return std::string("another message"); }},
                    message);
}

std::string brief(const CoordinatorMessage& message) {
  return std::visit(Overloaded{[](const StartRanks& m) { return fmt::format("start {}", m.generation.value); },
                               [](const KillGeneration& m) { return fmt::format("kill {}", m.generation.value); },
                               [](const SweepGeneration& m) { return fmt::format("sweep {}", m.generation.value); },
                               [](const SignalRanks& m) { return fmt::format("signal {}", m.signal); },
                               [](const auto&) { return std::string("another order"); }},
                    message);
}

std::string brief(const AgentAction& action) {
  return std::visit(
      Overloaded{[](const Send& a) { return "send " + brief(a.message); },
                 [](const Perform& a) { return "do " + brief(a.message); },
                 [](const Connect&) { return std::string("connect"); },
                 [](const Ask& a) { return fmt::format("ask {} of {}", a.heartbeat.number, a.heartbeat.instance); },
                 [](const Leave& a) { return fmt::format("leave {} {}", a.exit_code, a.reason); },
                 [](const TellHere& a) { return "tell " + a.text; }, [](const auto&) { return std::string(); }},
      action);
}

AgentPolicy hasty() {
  AgentPolicy policy;
  policy.lost_after = 2500ms;
  return policy;
}

Hello this_agent() {
  Hello hello;
  hello.instance = "this";
  return hello;
}

/// One agent, driven by hand; deadlines are left out of what is returned.
class Drive {
 public:
  explicit Drive(AgentPolicy policy = hasty()) : agent_(policy, this_agent()) {}

  Strings feed(const AgentEvent& event) {
    Strings decided;
    for (const auto& action : agent_.handle(event)) {
      if (const auto* send = std::get_if<Send>(&action)) sent = send->message;
      if (auto text = brief(action); !text.empty()) decided.push_back(text);
    }
    return decided;
  }
  Strings up(long when) { return feed(LinkUp{at_ms(when)}); }
  Strings down(long when) { return feed(LinkDown{"closed", at_ms(when)}); }
  Strings hear(CoordinatorMessage message, long when) { return feed(CoordinatorSaid{std::move(message), at_ms(when)}); }
  Strings start(int generation, long when) {
    StartRanks order;
    order.generation = Generation{generation};
    return hear(order, when);
  }
  Strings gone(int generation, long when) {
    return feed(NodeSaid{GenerationGone{Generation{generation}, at_ms(when)}, at_ms(when)});
  }
  Strings echo(long beaten, long when, Duration ahead = {}) {
    return hear(HeartbeatEcho{1, at_ms(beaten), at_ms((beaten + when) / 2) + ahead}, when);
  }
  Strings deadline(long when) { return feed(DeadlineReached{at_ms(when)}); }
  Strings signal(int number, long when) { return feed(AgentSignalled{number, at_ms(when)}); }

  AgentMessage sent;  ///< the last one

 private:
  Agent agent_;
};

}  // namespace

TEST_CASE("an agent says who it is, and beats") {
  Drive agent;
  CHECK(agent.up(0) == Strings{"send hello", "send heartbeat 1"});
  CHECK(agent.echo(0, 2) == Strings{});
  CHECK(agent.deadline(250) == Strings{"send heartbeat 2"});
}

TEST_CASE("ranks are started, told of and ended as asked") {
  Drive agent;
  agent.up(0);
  agent.echo(0, 2, 100s);
  CHECK(agent.start(0, 10) == Strings{"do start 0"});
  CHECK(agent.start(0, 11) == Strings{});  // twice
  auto exited = RankExited{Generation{0}, Rank{3}, {1}, raised("ValueError: x", 20), at_ms(30)};
  CHECK(agent.feed(NodeSaid{exited, at_ms(30)}) == Strings{"send exited 3"});
  const auto& told = std::get<RankExited>(agent.sent);
  CHECK(told.at == at_ms(30) + 100s);
  CHECK(told.evidence.first_error_at == at_ms(20) + 100s);
  CHECK(agent.hear(SweepGeneration{Generation{0}, SIGKILL}, 40) == Strings{"do sweep 0"});
  CHECK(agent.gone(0, 50) == Strings{"send gone 0"});
  CHECK(agent.gone(0, 51) == Strings{});
  CHECK(agent.hear(KillGeneration{Generation{0}}, 60) == Strings{"send gone 0"});
  CHECK(agent.hear(SignalRanks{Generation{0}, {}, SIGTERM}, 61) == Strings{});
}

TEST_CASE("the answer to a probe bears its number") {
  Drive agent;
  agent.up(0);
  agent.hear(ProbeAddresses{{"10.0.0.1"}, 4711, 3}, 10);
  agent.feed(NodeSaid{AddressesReached{{"10.0.0.1"}}, at_ms(20)});
  CHECK(std::get<AddressesReached>(agent.sent).probe == 3);
}

TEST_CASE("a new generation waits for the end of the former one") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.start(1, 20) == Strings{"do kill 0"});
  CHECK(agent.gone(0, 30) == Strings{"send gone 0", "do start 1"});
  CHECK(agent.start(0, 40) == Strings{});  // stale
}

TEST_CASE("a generation that is called off before it could start is gone") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  agent.start(1, 20);
  CHECK(agent.hear(KillGeneration{Generation{1}}, 25) == Strings{"send gone 1"});
  CHECK(agent.gone(0, 30) == Strings{"send gone 0"});
  CHECK(agent.start(1, 40) == Strings{});
}

TEST_CASE("the fence: without an answer ranks are killed, and the agent comes back as a newcomer") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  for (long when = 250; when < 1500; when += 250) agent.deadline(when);
  CHECK(agent.deadline(1499) == Strings{});
  CHECK(agent.deadline(1500) == Strings{"do kill 0"});
  CHECK(agent.start(1, 1510) == Strings{});  // that link is given up
  CHECK(agent.deadline(2500) == Strings{"do kill 0"});
  CHECK(agent.gone(0, 2600) == Strings{"connect"});
  CHECK(agent.up(2700) == Strings{"send hello", "send heartbeat 7"});
}

TEST_CASE("an answer counts from when its heartbeat was sent") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  agent.deadline(250);
  for (long when = 500; when < 1400; when += 250) agent.deadline(when);
  agent.echo(250, 1400);
  CHECK(agent.deadline(1749) == Strings{"send heartbeat 7", "ask 7 of this"});
  CHECK(agent.deadline(1750) == Strings{"do kill 0"});
}

TEST_CASE("after a freeze nothing that waited is obeyed before the coordinator has answered") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  agent.deadline(250);
  agent.echo(250, 251);
  CHECK(agent.start(1, 9000) == Strings{});
  CHECK(agent.echo(250, 9001) == Strings{});
  CHECK(agent.deadline(9001) == Strings{"send heartbeat 3", "ask 3 of this"});
  SECTION("which it does: all of them were stopped") {
    CHECK(agent.echo(9001, 9100) == Strings{"do kill 0"});
    CHECK(agent.gone(0, 9110) == Strings{"send gone 0", "do start 1"});
  }
  SECTION("and has given this node up") {
    CHECK(agent.down(9010) == Strings{"do kill 0"});
    CHECK(agent.gone(0, 9011) == Strings{"connect"});
  }
  SECTION("and does not") {
    CHECK(agent.deadline(9999) == Strings{"send heartbeat 4"});
    CHECK(agent.deadline(10499) == Strings{"send heartbeat 5", "ask 5 of this"});
    CHECK(agent.deadline(10500) == Strings{"do kill 0"});
  }
  SECTION("but says that the run is over") {
    CHECK(agent.hear(Dismissed{"", 0}, 9020) == Strings{"send goodbye", "do kill 0"});
  }
}

TEST_CASE("after a freeze that began when the coordinator did not answer ranks are killed at once") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  for (long when = 250; when <= 1000; when += 250) agent.deadline(when);
  CHECK(agent.deadline(9000) == Strings{"do kill 0"});
}

TEST_CASE("after a freeze ranks that were only being started are killed at once") {
  Drive agent;
  agent.up(0);
  StartRanks order;
  order.shares = {{NodeIndex{0}, Rank{0}, 1}};
  agent.hear(order, 10);
  SECTION("they were") { CHECK(agent.deadline(9000) == Strings{"do kill 0"}); }
  SECTION("they run") {
    agent.feed(NodeSaid{RankSpawned{Generation{0}, Rank{0}, 1, at_ms(20)}, at_ms(20)});
    CHECK(agent.deadline(9000) == Strings{"send heartbeat 2", "ask 2 of this"});
  }
  SECTION("they do not") {
    agent.feed(NodeSaid{RankSpawnFailed{Generation{0}, Rank{0}, 2, "no such file", at_ms(20)}, at_ms(20)});
    CHECK(agent.deadline(9000) == Strings{"send heartbeat 2", "ask 2 of this"});
  }
}

TEST_CASE("a coordinator that does not answer is asked over another connection") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.deadline(250) == Strings{"send heartbeat 2"});
  CHECK(agent.deadline(500) == Strings{"send heartbeat 3", "ask 3 of this"});
  agent.echo(500, 510);
  CHECK(agent.deadline(750) == Strings{"send heartbeat 4"});
  CHECK(agent.deadline(1749) == Strings{"send heartbeat 5", "ask 5 of this"});
}

TEST_CASE("a link that is gone is as bad as silence") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.down(100) == Strings{"do kill 0"});
  CHECK(agent.gone(0, 110) == Strings{"connect"});
  CHECK(agent.down(120) == Strings{});
  CHECK(agent.deadline(220) == Strings{"connect"});
}

TEST_CASE("a coordinator that stays away is waited for a minute") {
  Drive agent;
  agent.up(0);
  CHECK(agent.down(1000) == Strings{"connect"});
  agent.down(1001);
  CHECK(agent.deadline(61000) == Strings{"connect", "leave 1 the coordinator could not be reached for 60 s: closed"});
  CHECK(agent.up(61001) == Strings{});
}

TEST_CASE("who waits for a coordinator is told why nobody answers, each reason once") {
  AgentPolicy policy;
  policy.connect_for = 600s;
  Drive agent(policy);
  auto down = [&agent](const char* why, long when) { return agent.feed(LinkDown{why, at_ms(when)}); };
  CHECK(down("node1 port 29400: timed out", 0) == Strings{});
  CHECK(agent.deadline(3000) ==
        Strings{"connect", "tell still looking for the coordinator, for 597 s more: node1 port 29400: timed out"});
  down("node1 port 29400: timed out", 8000);
  CHECK(agent.deadline(33000) == Strings{"connect"});
  down("node1 port 29400: wrong secret", 34000);
  CHECK(agent.deadline(63000) == Strings{"connect",
                                         "tell still looking for the coordinator, for 537 s more: node1 port 29400: "
                                         "wrong secret (TAAS_TOKEN or --token-file is not the same)"});
  down("node1 port 29400: wrong secret", 64000);
  CHECK(agent.deadline(600000) == Strings{"connect",
                                          "leave 1 the coordinator could not be reached for 600 s: node1 port 29400: "
                                          "wrong secret (TAAS_TOKEN or --token-file is not the same)"});
}

TEST_CASE("an agent that its coordinator has started bothers nobody while it connects") {
  AgentPolicy policy;
  policy.coordinator_first = true;
  Drive agent(policy);
  agent.down(0);
  CHECK(agent.deadline(3000) == Strings{"connect"});
}

TEST_CASE("dismissed, it leaves when its ranks are gone") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.hear(Dismissed{"the run is over", 3}, 20) == Strings{"send goodbye", "do kill 0"});
  CHECK(agent.down(21) == Strings{});
  CHECK(agent.gone(0, 30) == Strings{"leave 3 the run is over"});
}

TEST_CASE("a stop signal is the coordinator's to judge; the second one is not") {
  Drive agent;
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.signal(SIGTERM, 20) == Strings{"send signalled 15"});
  CHECK(agent.signal(SIGTERM, 100) == Strings{});  // the same wish by way of the keeper
  CHECK(agent.signal(SIGTERM, 1000) == Strings{"send signalled 15", "do kill 0"});
  CHECK(agent.gone(0, 1010) == Strings{"leave 143 "});
}

TEST_CASE("what srun tells every process of a step is one wish") {
  AgentPolicy policy;
  policy.echo = {.within = 2s, .interrupts = true};
  Drive agent(policy);
  agent.up(0);
  agent.start(0, 10);
  CHECK(agent.signal(SIGINT, 20) == Strings{"send signalled 2"});
  CHECK(agent.signal(SIGINT, 30) == Strings{});
}

TEST_CASE("in the coordinator's process there are no heartbeats and no fence") {
  AgentPolicy policy;
  policy.in_process = true;
  Drive agent(policy);
  CHECK(agent.up(0) == Strings{"send hello"});
  CHECK(agent.start(0, 1000000) == Strings{"do start 0"});
  CHECK(agent.deadline(9000000) == Strings{});
}

}  // namespace agent_test
