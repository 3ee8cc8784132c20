#include "run/looks/phases.hpp"

#include "catch.hpp"
#include "run/looks/looks.hpp"

namespace phases_test {

using namespace taas;
using namespace taas::run;
using namespace taas::run::made;

namespace {

const std::string kTorch = "/venv/lib/python3.11/site-packages/torch/";

std::string phase(std::vector<SeenFrame> frames, bool joined = true, Wait wait = Wait::kNothing) {
  return phase_of(look(0, thread(std::move(frames), wait)), joined);
}

RankReport report(int rank, const std::string& phase, const std::string& line = "train.py:88", double rate = 0) {
  RankReport made;
  made.rank = Rank{rank};
  made.phase = phase;
  made.line = line;
  made.steps = rate > 0 ? 100 : 0;
  made.steps_per_s = rate;
  return made;
}

std::string text(const std::vector<RankReport>& ranks) {
  const auto phase = phase_of_run(ranks);
  return phase.name + phase.rest;
}

}  // namespace

TEST_CASE("what is imported is the module that the program asked for") {
  const std::vector<SeenFrame> importing{{"<module>", "/venv/lib/python3.11/site-packages/numpy/core/numeric.py", 3},
                                         {"_call_with_frames_removed", "<frozen importlib._bootstrap>", 241},
                                         {"<module>", kTorch + "__init__.py", 30},
                                         {"_find_and_load", "<frozen importlib._bootstrap>", 1176},
                                         kMain};
  CHECK(phase(importing, false) == "importing torch");
  CHECK(phase(importing, true) == "importing torch");
  CHECK(phase({{"get_data", "<frozen importlib._bootstrap_external>", 9}, kMain}, false) == "importing");
}

TEST_CASE("phases of a training program") {
  CHECK(phase(in_library("_rendezvous", "distributed/rendezvous.py"), false) == "joining");
  CHECK(phase({kUser, kMain}, false) == "running");
  CHECK(phase({kUser, kMain}) == "training");
  CHECK(phase(in_all_reduce()) == "training");
  CHECK(phase({}) == "running");
  CHECK(phase({kUser, {"save_checkpoint", "/home/me/train.py", 9}, kMain}) == "saving");
  CHECK(phase(in_library("_save", "serialization.py")) == "saving");
  CHECK(phase({kUser, {"Trainer.Evaluate", "/home/me/train.py", 9}, kMain}) == "evaluating");
  CHECK(phase({kUser, {"validate", "/home/me/train.py", 9}, kMain}) == "evaluating");
  CHECK(phase(in_library("_next_data", "utils/data/dataloader.py")) == "loading data");
  CHECK(phase({kUser, kMain}, true, Wait::kStopped) == "stopped");
  CHECK(phase_of(RankLook(), true) == "running");
}

TEST_CASE("what most ranks are about is what the run is about") {
  CHECK(text({}) == "");
  CHECK(text({report(0, "training"), report(1, "training")}) == "training at train.py:88");
  CHECK(text({report(0, "training"), report(1, "training", "train.py:90")}) == "training");
  CHECK(text({report(0, "importing torch"), report(1, "importing torch"), report(2, "joining")}) ==
        "importing torch (2 of 3 ranks)");
  CHECK(text({report(0, "saving", "ckpt.py:3"), report(1, "training"), report(2, "training")}) ==
        "training at train.py:88 (2 of 3 ranks)");
}

TEST_CASE("where programs count steps, the rate is told, and a straggler") {
  CHECK(text({report(0, "training", "a.py:1", 3.2), report(1, "training", "a.py:1", 3.1)}) ==
        "training at a.py:1, 3.2 steps/s");
  CHECK(text({report(0, "training", "a.py:1", 3.2), report(1, "training", "a.py:1", 2.1),
              report(2, "training", "a.py:1", 3.2)}) == "training at a.py:1, 3.2 steps/s, rank 1 2.1");
}

TEST_CASE("rates are short") {
  CHECK(rate_in_words(0.0412) == "0.041");
  CHECK(rate_in_words(3.21) == "3.2");
  CHECK(rate_in_words(1234.4) == "1234");
}

}  // namespace phases_test
