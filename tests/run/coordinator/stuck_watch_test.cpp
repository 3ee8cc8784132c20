#include "run/coordinator/stuck_watch.hpp"

#include <catch.hpp>

#include "run/coordinator/coordinator_parts.hpp"
#include "run/looks/looks.hpp"

namespace stuck_watch_test {

using namespace taas;
using namespace taas::run;
using namespace taas::run::made;

namespace {

/// Two agents with two ranks each, of which all have started.
struct Watched : Parts {
  explicit Watched(Duration hang_timeout = {}, bool tells_phases = false)
      : watch(hang_timeout, tells_phases, decisions, agents, members, machines) {
    add(2);
    members.begin(Generation{0});
    members.seat({AgentId{0}, AgentId{1}}, {{NodeIndex{0}, Rank{0}, 2}, {NodeIndex{1}, Rank{2}, 2}});
    spawn_all();
  }

  void spawn_all() {
    watch.see(NodesGathered{4, {NodeIndex{0}, NodeIndex{0}, NodeIndex{1}, NodeIndex{1}}, {"a", "b"}, at_ms(0)});
    for (int rank = 0; rank < 4; ++rank) watch.see(RankSpawned{Generation{0}, Rank{rank}, 100 + rank, at_ms(0)});
    decided();
  }

  void motion(int rank, bool moves, long since, long when) {
    at(when);
    watch.on(AgentId{rank / 2}, RankMotion{Generation{0}, Rank{rank}, moves, at_ms(since)});
  }
  void all_still(long since, long when) {
    for (int rank = 0; rank < 4; ++rank) motion(rank, false, since, when);
  }
  /// What comes due until then, at its time.
  Strings until(long when) {
    while (auto next = watch.next_check()) {
      if (*next > at_ms(when)) break;
      decisions.begin(*next);
      watch.check();
    }
    at(when);
    return decided();
  }
  /// Both agents have looked: rank 2 is in a function of its own, the others wait in a collective.
  void answer(std::uint64_t number, const std::vector<RankLook>& looks) {
    for (int agent = 0; agent < 2; ++agent) {
      const auto first = looks.begin() + 2 * agent;
      watch.on(AgentId{agent}, RanksSeen{Generation{0}, number, {first, first + 2}});
    }
  }
  static std::vector<RankLook> one_blocked(long when) {
    std::vector<RankLook> looks;
    for (int rank = 0; rank < 4; ++rank) {
      looks.push_back(rank == 2 ? look(rank, thread({{"load", "/home/me/data.py", 41}}))
                                : look(rank, thread(in_all_reduce())));
      looks.back().at = at_ms(when);
    }
    return looks;
  }

  Members members{decisions, agents};
  DataNodes machines{{}};
  StuckWatch watch;
};

const Strings kLookAgain{"0: look at all 2", "1: look at all 2"};

}  // namespace

TEST_CASE("what ranks are about is told while they begin, and then now and then") {
  Watched run({}, true);
  CHECK(run.until(1999).empty());
  CHECK(run.until(2000) == Strings{"0: look at all 1", "1: look at all 1"});
  run.answer(1, Watched::one_blocked(2000));
  CHECK(run.until(2100) == Strings{"phase joining at train.py:88 (3 of 4 ranks)"});
  for (int rank = 0; rank < 4; ++rank) run.watch.see(RankJoined{Generation{0}, Rank{rank}, at_ms(3000)});
  CHECK(run.until(5000) == Strings{"0: look at all 2", "1: look at all 2"});
  run.answer(2, Watched::one_blocked(5000));
  CHECK(run.until(24999) == Strings{"phase training"});
  CHECK(run.until(25000) == Strings{"0: look at all 3", "1: look at all 3"});
  run.watch.end();
  CHECK(run.until(100000).empty());
}

TEST_CASE("a live line says that nothing moves, until something does") {
  Watched run({}, true);
  for (int rank = 0; rank < 4; ++rank) run.watch.see(RankJoined{Generation{0}, Rank{rank}, at_ms(1)});
  CHECK(run.until(2000).size() == 2);
  run.answer(1, Watched::one_blocked(2000));
  run.all_still(1000, 11000);
  CHECK(run.until(11000) == Strings{"phase training", "0: look at all 2", "1: look at all 2"});
  run.answer(2, Watched::one_blocked(11000));
  CHECK(run.until(16000).size() == 2);
  run.answer(3, Watched::one_blocked(16000));
  const auto said = run.decided();
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "phase nothing moves");
  for (int rank = 0; rank < 4; ++rank) run.motion(rank, true, 20000, 20000);
  CHECK(run.until(20000).front().starts_with("say moving again"));
}

TEST_CASE("nobody looks where nobody sees it") {
  Watched run;
  CHECK(run.until(100000).empty());
}

TEST_CASE("a standstill is looked at twice, and told once") {
  Watched run;
  run.all_still(1000, 11000);
  CHECK(run.until(11000) == Strings{"0: look at all 1", "1: look at all 1"});
  run.answer(1, Watched::one_blocked(11000));
  CHECK(run.until(15999).empty());
  CHECK(run.until(16000) == kLookAgain);
  run.answer(2, Watched::one_blocked(16000));
  const auto said = run.decided();
  REQUIRE(said.size() == 1);
  CHECK(said[0] ==
        "say nothing has moved for 15 s: ranks 0, 1 on node 0 (a), 3 on node 1 (b) wait in all_reduce (train.py:88) "
        "for rank 2 on "
        "node 1 (b) in load (data.py:41), which waits for a lock or another thread");
  CHECK(run.watch.last_seen(Rank{2}) ==
        "rank 2 on node 1 (b) in load (data.py:41), which waits for a lock or another thread");

  SECTION("again only much later") {
    std::uint64_t number = 2;
    for (long when = 26000; when < 100000; when += 15000) {
      CHECK(run.until(when).size() == 2);  // both agents look
      run.answer(++number, Watched::one_blocked(when));
      CHECK(run.until(when + 5000).size() == 2);
      run.answer(++number, Watched::one_blocked(when + 5000));
      CHECK(run.decided().empty());
    }
  }
  SECTION("and when it moves again") {
    for (int rank = 0; rank < 4; ++rank) run.motion(rank, true, 20000, 21000);
    CHECK(run.until(21000) == Strings{"say moving again after 20 s"});
    CHECK_FALSE(run.watch.next_check());
  }
}

TEST_CASE("a standstill that lasts as long as was allowed ends the generation") {
  Watched run(std::chrono::seconds(30));
  run.all_still(1000, 11000);
  std::uint64_t number = 0;
  for (long when : {11000, 16000, 26000}) {
    CHECK(run.until(when).size() == 2);
    run.answer(++number, Watched::one_blocked(when));
    run.decided();
    CHECK(run.reported().empty());
  }
  CHECK(run.until(31000).size() == 2);
  run.answer(++number, Watched::one_blocked(31000));
  CHECK(run.reported() == Strings{"ranks_stuck"});
}

TEST_CASE("the same standstill of the next generation is told again") {
  Watched run;
  std::uint64_t number = 0;
  const auto said_at = [&](long when) {
    run.all_still(when - 10000, when);
    CHECK(run.until(when).size() == 2);
    run.answer(++number, Watched::one_blocked(when));
    CHECK(run.until(when + 5000).size() == 2);
    run.answer(++number, Watched::one_blocked(when + 5000));
    return run.decided();
  };
  CHECK(said_at(11000).size() == 1);
  run.watch.end();
  run.spawn_all();
  CHECK(said_at(41000).size() == 1);
}

TEST_CASE("ranks that get on are no standstill, and are looked at less and less often") {
  Watched run;
  run.motion(0, false, 1000, 11000);
  std::uint64_t number = 0;
  std::vector<long> starts;
  for (long when = 11000; when < 200000; when += 100) {
    const auto asked = run.until(when);
    if (asked.empty()) continue;
    REQUIRE(asked.size() == 2);
    ++number;
    if (number % 2 == 1) starts.push_back(when);
    auto looks = Watched::one_blocked(when);
    for (auto& seen : looks) seen.processes[0].threads[0].frames = {{"a", "/home/me/a.py", static_cast<int>(when)}};
    run.answer(number, looks);
    CHECK(run.decided().empty());
  }
  REQUIRE(starts.size() >= 4);
  CHECK(starts[2] - starts[1] > starts[1] - starts[0]);
  CHECK(starts[3] - starts[2] > starts[2] - starts[1]);
}

TEST_CASE("an agent that does not answer is not waited for, and nothing is concluded") {
  Watched run;
  run.all_still(1000, 11000);
  run.until(11000);
  const auto looks = Watched::one_blocked(11000);
  run.watch.on(AgentId{0}, RanksSeen{Generation{0}, 1, {looks[0], looks[1]}});
  CHECK(run.until(19000) == kLookAgain);
  run.answer(2, Watched::one_blocked(19000));
  CHECK(run.decided().empty());
}

TEST_CASE("an agent is not believed about other agents' ranks, nor about a former generation") {
  Watched run;
  run.at(11000);
  run.watch.on(AgentId{0}, RankMotion{Generation{0}, Rank{3}, false, at_ms(0)});
  run.watch.on(AgentId{0}, RankMotion{Generation{1}, Rank{0}, false, at_ms(0)});
  CHECK_FALSE(run.watch.next_check());
}

TEST_CASE("what is being stopped does not stand still") {
  Watched run;
  run.all_still(1000, 11000);
  run.watch.end();
  CHECK(run.until(60000).empty());
}

TEST_CASE("somebody who asks is answered soon") {
  Watched run;
  run.at(1000);
  run.watch.on(LookAsked{7, -1, at_ms(1000)});
  CHECK(run.decided() == Strings{"0: look at all 1", "1: look at all 1"});
  run.answer(1, Watched::one_blocked(1000));
  CHECK(run.until(1300) == kLookAgain);
  run.answer(2, Watched::one_blocked(1300));
  CHECK(run.decided() == Strings{"look ready"});
  SECTION("about one rank, by its agent alone") {
    run.watch.on(LookAsked{7, 3, at_ms(1300)});
    CHECK(run.decided() == Strings{"1: look at 3 3"});
  }
  SECTION("without the agents that do not answer") {
    run.watch.on(LookAsked{8, -1, at_ms(1300)});
    run.decided();
    CHECK(run.until(10000).back() == "look ready");
  }
  SECTION("at once where no rank is there") {
    for (int rank = 0; rank < 4; ++rank) run.watch.see(RankExited{Generation{0}, Rank{rank}, {}, {}, at_ms(1400)});
    run.watch.on(LookAsked{9, -1, at_ms(1500)});
    CHECK(run.decided() == Strings{"look ready"});
  }
}

}  // namespace stuck_watch_test
