#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace output_routing_test {

using namespace taas;
using namespace taas::run;

namespace {

/// Nodes 0.. of which each sees the folder with this mark; the coordinator's is "c".
struct Folders : Drive {
  explicit Folders(Strings marks, int spares = 0)
      : Drive(with_folder(static_cast<int>(marks.size()) - spares, spares)) {
    const auto count = static_cast<int>(marks.size());
    for (int i = 0; i < count; ++i) {
      arrive(i, hello(i), 0);
      said(i, Ready{4711, {}, {}, marks[static_cast<std::size_t>(i)]}, 0);
    }
    for (int i = 0; i < count - spares; ++i) started = probed(i, 0);
  }

  static CoordinatorPolicy with_folder(int nodes, int spares) {
    auto made = policy(nodes, nodes, nodes + spares);
    made.folder = "c";
    return made;
  }

  /// All ranks of the generation end well; returns what is decided then.
  Strings end_well(Strings agents_of_rank, int generation = 0) {
    Strings decided;
    int rank = 0;
    for (const auto& agent : agents_of_rank) {
      said(std::stoi(agent), RankSpawned{Generation{generation}, Rank{rank}, 1, at_ms(10)}, 10);
      exited(std::stoi(agent), generation, rank++, {}, 20);
    }
    std::set<std::string> members(agents_of_rank.begin(), agents_of_rank.end());
    for (const auto& agent : members) decided = gone(std::stoi(agent), generation, 30);
    return decided;
  }
  Strings settled(int agent, int files, const std::string& error = "") {
    return said(agent, OutputSettled{error, at_ms(40), files}, 40);
  }
  Strings placed(const std::string& error = "") { return feed(OutputPlaced{error, 1, at_ms(50)}); }

  Strings started;
};

}  // namespace

TEST_CASE("of nodes that see one folder the first one publishes for all") {
  Folders run({"c", "c"});
  CHECK(run.started.size() == 2);  // nobody delivers
  CHECK(run.end_well({"0", "0", "1", "1"}) == Strings{"0: settle"});
  CHECK(run.settled(0, 3).back() == "finish 0");
}

TEST_CASE("a node with another folder delivers, and names are given when all have settled") {
  Folders run({"c", "own"});
  CHECK(run.started.front() == "1 into .delivered/1");
  CHECK(run.end_well({"0", "0", "1", "1"}) == Strings{"0: settle", "1: settle"});
  CHECK(run.settled(1, 1) == Strings{});
  CHECK(run.settled(0, 1) == Strings{"place .delivered/1 of host1"});
  CHECK(run.placed().back() == "finish 0");
}

TEST_CASE("what rank 0 writes has its names at once, wherever it is") {
  Folders run({"own", "c"});
  CHECK(run.started.front() == "0 into output");
  CHECK(run.end_well({"0", "0", "1", "1"}) == Strings{"0: settle", "1: settle"});
  run.settled(0, 1);
  CHECK(run.settled(1, 1) == Strings{"place .delivered/1 of host1"});
}

TEST_CASE("nodes that share a disk of their own deliver once") {
  Folders run({"theirs", "theirs", "own"});
  CHECK(run.started.front() == "0 into output");
  CHECK(run.started[1] == "2 into .delivered/1");
  CHECK(run.end_well({"0", "0", "1", "1", "2", "2"}) == Strings{"0: settle", "2: settle"});
}

TEST_CASE("a node without a mark sees a folder of its own") {
  Folders run({"", ""});
  CHECK(run.started.front() == "0 into output");
  CHECK(run.started[1] == "1 into .delivered/1");
}

TEST_CASE("what cannot be delivered or gets no name fails the run, with the node's name") {
  Folders run({"c", "own"});
  run.end_well({"0", "0", "1", "1"});
  run.settled(0, 1);
  run.settled(1, 0, "no space left; a stays in /out");
  auto decided = run.placed("host1: a: there is another file of this name");
  CHECK(decided.back() == "finish 1");
  REQUIRE(decided.size() > 2);
}

TEST_CASE("a node that is lost before its output came fails a run that had gone well") {
  Folders run({"c", "own"});
  run.end_well({"0", "0", "1", "1"});
  run.settled(0, 1);
  CHECK(run.left(1, 45).back() == "place .delivered/1 of host1");
  CHECK(run.placed().back() == "finish 1");
}

TEST_CASE("a node that came back settles what it had in a former generation") {
  Folders run({"c", "own", "c"}, 1);
  run.left(1, 1000);
  for (int rank : {0, 1}) run.said(0, RankSpawned{Generation{0}, Rank{rank}, 1, at_ms(1000)}, 1000);
  run.exited(0, 0, 0, kTerminated, 1010);
  run.exited(0, 0, 1, kTerminated, 1010);
  run.gone(0, 0, 1020);
  run.deadline(1500);
  run.probed(2, 1510);
  run.arrive(7, hello(1), 1600);
  CHECK(run.said(7, Ready{4711, {}, {}, "own"}, 1600) == Strings{"7 into .delivered/1"});
  CHECK(run.end_well({"0", "0", "2", "2"}, 1) == Strings{"0: settle", "7: settle"});
}

TEST_CASE("agents without anything of the run are not asked to settle") {
  Parts parts;
  OutputRouting output("", parts.decisions, parts.agents);
  parts.add(2);
  output.assign({AgentId{0}, AgentId{1}}, Generation{0});
  CHECK(output.duty_of(AgentId{0}).publishes);
  CHECK_FALSE(output.duty_of(AgentId{1}).publishes);
  output.abandon();
  output.settle(true);
  CHECK(parts.decided() == Strings{"0: abandon", "0: settle"});
  output.on(AgentId{1}, OutputSettled{"", at_ms(0), 3});
  CHECK(parts.reported().empty());
  output.on(AgentId{0}, OutputSettled{"", at_ms(0), 2});
  CHECK(std::get<OutputSettled>(*parts.decisions.next_report()).files == 2);
}

TEST_CASE("what was written on a machine that is gone is missed") {
  Parts parts;
  OutputRouting output("", parts.decisions, parts.agents);
  parts.add(1);
  output.assign({AgentId{0}}, Generation{0});
  parts.agents.remove(AgentId{0});
  output.settle(true);
  CHECK(std::get<OutputSettled>(*parts.decisions.next_report()).error ==
        "node 0 (host0) was lost before what rank 0 wrote was on disk");
}

namespace {

/// Agents 0.. that see the same folder, each by the kernel of this name.
struct Kernels : Parts {
  explicit Kernels(const Strings& views) {
    add(static_cast<int>(views.size()));
    for (int i = 0; i < static_cast<int>(views.size()); ++i) {
      agents.ready(AgentId{i}, Ready{4711, {}, {}, "c", views[static_cast<std::size_t>(i)]});
      nodes.push_back(AgentId{i});
    }
  }
  OutputRouting output{"c", decisions, agents};
  std::vector<AgentId> nodes;
};

}  // namespace

TEST_CASE("of those that see one folder by several kernels, one publishes for each kernel") {
  Kernels run({"x", "y", "x", "y"});
  run.output.assign(run.nodes, Generation{0});
  for (int publisher : {0, 1}) {
    const auto duty = run.output.duty_of(AgentId{publisher});
    CHECK(duty.publishes);
    CHECK(duty.asks);
    CHECK_FALSE(duty.alone);
    CHECK(duty.folder == "output");
  }
  for (int other : {2, 3}) CHECK_FALSE(run.output.duty_of(AgentId{other}).publishes);
}

TEST_CASE("who has published goes on where it can, since it knows what was whole") {
  Kernels run({"x", "x", "x"});
  run.output.assign({AgentId{1}, AgentId{2}}, Generation{0});
  REQUIRE(run.output.duty_of(AgentId{1}).publishes);
  run.output.assign(run.nodes, Generation{1});
  CHECK(run.output.duty_of(AgentId{1}).publishes);
  CHECK_FALSE(run.output.duty_of(AgentId{0}).publishes);
}

TEST_CASE("a publisher that asks hears whether the others' ranks all go on well") {
  Kernels run({"x", "x", "x", "y"});
  run.output.assign(run.nodes, Generation{0});
  run.output.on(AgentId{0}, AskWriters{Generation{0}, 7});
  CHECK(run.decided() == Strings{"1: look 1", "2: look 1"});
  run.output.on(AgentId{1}, WritersSeen{1, true});
  run.output.on(AgentId{1}, WritersSeen{1, true});
  CHECK(run.decided().empty());
  SECTION("they do") {
    run.output.on(AgentId{2}, WritersSeen{1, true});
    CHECK(run.decided() == Strings{"0: writers 7 well"});
  }
  SECTION("one does not") {
    run.output.on(AgentId{2}, WritersSeen{1, false});
    CHECK(run.decided() == Strings{"0: writers 7 not well"});
  }
  SECTION("one answers only when the generation is over") {
    run.output.assign(run.nodes, Generation{1});
    run.output.on(AgentId{2}, WritersSeen{1, true});
    CHECK(run.decided().empty());
  }
}

}  // namespace output_routing_test
