#include "training/agreement/skip_agreement.hpp"

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "catch.hpp"
#include "taas/error.hpp"

namespace skip_agreement_test {

namespace {

using Turns = std::vector<std::vector<std::size_t>>;

/// What one rank hears in its turns; `lacks` has one for each of them.
Turns loop(const c10::intrusive_ptr<c10d::Store>& store, std::size_t rank, std::size_t ranks, std::vector<bool> lacks) {
  taas::SkipAgreement agreement(store, rank, ranks, std::chrono::seconds(60));
  Turns turns;
  for (bool lacking : lacks) turns.push_back(agreement.lacking(lacking));
  return turns;
}

std::vector<Turns> loops(const std::vector<std::vector<bool>>& lacks, const c10::intrusive_ptr<c10d::Store>& store) {
  std::vector<std::future<Turns>> running;
  for (std::size_t rank = 0; rank < lacks.size(); ++rank) {
    running.push_back(std::async(std::launch::async, loop, store, rank, lacks.size(), lacks[rank]));
  }
  std::vector<Turns> turns;
  for (auto& one : running) turns.push_back(one.get());
  return turns;
}

}  // namespace

TEST_CASE("All ranks leave out the turns for which one of them lacks a batch") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  const auto turns =
      loops({{false, true, false, true}, {false, false, false, true}, {true, false, false, false}}, store);
  const Turns wanted{{2}, {0}, {}, {0, 1}};
  for (const auto& heard : turns) CHECK(heard == wanted);
}

TEST_CASE("A rank that is at its end is not waited for") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  const auto turns = loops({{false}, {false, false, true}, {}}, store);
  CHECK(turns[0] == Turns{{}});
  CHECK(turns[1] == Turns{{}, {}, {1}});
  CHECK(turns[2].empty());
}

TEST_CASE("What was said is removed, but for the last words") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  loops({std::vector<bool>(50, false), std::vector<bool>(50, true)}, store);
  CHECK(store->getNumKeys() <= 4);
}

TEST_CASE("A rank that never comes is named") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  taas::SkipAgreement agreement(store, 1, 3, std::chrono::milliseconds(10));
  store->set("0/2", {'h', 'a', 's'});
  CHECK_THROWS_WITH(agreement.lacking(false), ContainsSubstring("nothing came from rank 0 for batch 0 within 0 s"));
}

}  // namespace skip_agreement_test
