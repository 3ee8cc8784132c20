#include "run/coordinator/silent_mistakes.hpp"

#include "catch.hpp"

namespace silent_mistakes_test {

using namespace taas;
using namespace taas::run;

namespace {

TrainingFacts trained() {
  TrainingFacts facts;
  facts.trained = true;
  return facts;
}

TrainingFacts on_gpus(int seen, std::vector<int> used) {
  auto facts = trained();
  facts.gpus = seen;
  facts.gpus_used = std::move(used);
  return facts;
}

TrainingFacts data_parallel(std::vector<int> gpus, std::string visible = "") {
  TrainingFacts facts;
  facts.data_parallel_gpus = std::move(gpus);
  facts.visible_gpus = std::move(visible);
  return facts;
}

TrainingFacts saved(SaveTime time, std::uint64_t inode = 7, std::string path = "/run/model.pt") {
  TrainingFacts facts;
  facts.saved = {{std::move(path), 1, inode, {time}}};
  return facts;
}

struct World {
  explicit World(std::vector<NodeIndex> nodes) {
    mistakes.see(NodesGathered{static_cast<int>(nodes.size()), std::move(nodes), {}, {}});
  }

  void ends(int rank, TrainingFacts facts, int code = 0) {
    mistakes.add(Rank{rank}, std::move(facts));
    mistakes.see(RankExited{{}, Rank{rank}, {code, 0, false}, {}, {}});
  }

  /// The beginning of the only line; "" when there is none.
  std::string line() const {
    auto lines = mistakes.lines();
    REQUIRE(lines.size() < 2);
    return lines.empty() ? "" : lines.front().substr(0, lines.front().find(':'));
  }

  SilentMistakes mistakes;
};

World two_ranks() { return World({NodeIndex{0}, NodeIndex{0}}); }

std::string line_of(TrainingFacts first, TrainingFacts second, World world = two_ranks()) {
  world.ends(0, std::move(first));
  world.ends(1, std::move(second));
  return world.line();
}

constexpr SaveTime kEarly{100, 200, 0};
constexpr SaveTime kLate{300, 400, 0};

}  // namespace

TEST_CASE("ranks that all trained without a group are told of once") {
  CHECK(line_of(trained(), trained()) == "2 ranks trained without a process group, each on its own");
}

TEST_CASE("the way out is the framework's own") {
  for (auto [framework, way] : {std::pair{"accelerate", "PartialState(cpu=True)"},
                                {"lightning", "Trainer or Fabric"},
                                {"", "init_process_group()"}}) {
    auto facts = trained();
    facts.framework = framework;
    auto world = two_ranks();
    world.ends(0, facts);
    world.ends(1, facts);
    REQUIRE(world.mistakes.lines().size() == 1);
    CHECK_THAT(world.mistakes.lines().front(), ContainsSubstring(way));
  }
}

TEST_CASE("a framework that does not use the group that there is trains without it") {
  auto alone = trained();
  alone.joined = true;
  alone.framework = "accelerate";
  alone.counted_one = true;
  auto met = two_ranks();
  met.mistakes.see(StoreReached{});
  CHECK(line_of(alone, alone, met) == "2 ranks trained as if there were no others, each on its own");
  auto together = alone;
  together.counted_one = false;
  CHECK(line_of(alone, together, met).empty());
}

TEST_CASE("a group, a failure, a rank that tells nothing or another start is no training without a group") {
  auto joined = trained();
  joined.joined = true;
  CHECK(line_of(trained(), joined).empty());
  CHECK(line_of(trained(), TrainingFacts{}).empty());

  auto failed = two_ranks();
  failed.ends(0, trained());
  failed.ends(1, trained(), 1);
  CHECK(failed.line().empty());

  auto silent = two_ranks();
  silent.ends(0, trained());
  silent.mistakes.see(RankExited{{}, Rank{1}, {}, {}, {}});
  CHECK(silent.line().empty());

  auto met = two_ranks();
  met.mistakes.see(StoreReached{});
  CHECK(line_of(trained(), trained(), met).empty());

  World alone({NodeIndex{0}});
  alone.ends(0, trained());
  CHECK(alone.line().empty());

  auto again = two_ranks();
  again.ends(0, trained());
  again.ends(1, trained());
  again.mistakes.see(NodesGathered{2, {NodeIndex{0}, NodeIndex{0}}, {}, {}});
  CHECK(again.line().empty());
}

TEST_CASE("the same order of the same loader in several ranks is work done twice, on one node or on two") {
  auto shuffled = [](std::string loader, std::string digest) {
    TrainingFacts facts;
    facts.shuffled = {{std::move(loader), std::move(digest)}};
    return facts;
  };
  const std::string told = "ranks 0, 1 had the same samples of train in the same order, so that each did the same work";
  CHECK(line_of(shuffled("train", "a"), shuffled("train", "a")) == told);
  CHECK(line_of(shuffled("train", "a"), shuffled("train", "b")).empty());
  CHECK(line_of(shuffled("train", "a"), shuffled("test", "a")).empty());
  CHECK(line_of(shuffled("train", "a"), {}).empty());
  CHECK_FALSE(line_of(shuffled("train", "a"), shuffled("train", "a"), World({NodeIndex{0}, NodeIndex{1}})).empty());
}

TEST_CASE("DataParallel is a mistake where ranks share a GPU") {
  CHECK(line_of(data_parallel({0, 1}), data_parallel({0, 1})) ==
        "ranks 0, 1 each used nn.DataParallel on the same GPUs");
  CHECK(line_of(data_parallel({0, 1}), data_parallel({2, 3})).empty());
  CHECK(line_of(data_parallel({0, 1}, "0,1"), data_parallel({0, 1}, "2,3")).empty());
  CHECK(line_of(data_parallel({0, 1}), {}).empty());
  CHECK(line_of(data_parallel({0, 1}), data_parallel({0, 1}), World({NodeIndex{0}, NodeIndex{1}})).empty());
}

TEST_CASE("all ranks on GPU 0 are a mistake where there is a GPU for each") {
  auto met = two_ranks();
  met.mistakes.see(StoreReached{});
  CHECK(line_of(on_gpus(4, {0}), on_gpus(4, {0}), met) == "ranks 0, 1 all used GPU 0, and none of the other 3");
  CHECK(line_of(on_gpus(4, {0}), on_gpus(4, {1}), met).empty());
  CHECK(line_of(on_gpus(4, {0}), on_gpus(4, {0, 1}), met).empty());
  CHECK(line_of(on_gpus(1, {0}), on_gpus(1, {0}), met).empty());
  CHECK(line_of(on_gpus(4, {0}), on_gpus(0, {}), met).empty());
  auto untrained = on_gpus(4, {0});
  untrained.trained = false;
  CHECK(line_of(untrained, untrained, met).empty());
}

TEST_CASE("a file is the same when ranks wrote it at one time or after one step") {
  const std::string told = "ranks 0, 1 saved to the same file, /run/model.pt";
  CHECK(line_of(saved({100, 300, 0}), saved({200, 400, 0})) == told);
  CHECK(line_of(saved({100, 200, 5}), saved({300, 400, 5})) == told);
  CHECK(line_of(saved(kEarly), saved(kLate)).empty());
  CHECK(line_of(saved({100, 200, 5}), saved({300, 400, 6})).empty());
  CHECK(line_of(saved(kEarly), saved(kEarly, 8)).empty());
  CHECK(line_of(saved(kEarly), saved(kEarly, 7, "/run/other.pt")).empty());
  CHECK(line_of(saved(kEarly), {}).empty());
  CHECK(line_of(saved(kEarly), saved(kEarly), World({NodeIndex{0}, NodeIndex{1}})).empty());
}

TEST_CASE("a mistake of several nodes is told of once, with its ranks") {
  World world({NodeIndex{0}, NodeIndex{0}, NodeIndex{1}, NodeIndex{1}});
  for (int rank = 0; rank < 4; ++rank) world.ends(rank, saved(kEarly));
  CHECK(world.line() == "ranks 0, 1 (node 0) saved to the same file, /run/model.pt");
}

}  // namespace silent_mistakes_test
