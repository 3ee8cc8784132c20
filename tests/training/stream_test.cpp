#include <torch/data/samplers/sequential.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data_examples.hpp"
#include "data_workers.hpp"
#include "loops.hpp"
#include "taas/data.hpp"
#include "taas/error.hpp"

namespace stream_test {

// Loops over iterable datasets, without data workers, and with one or two processes of data_worker_program.cpp.
namespace {

using namespace taas;
using namespace taas::test;

using Labels = std::vector<std::vector<std::int64_t>>;

Labels labels_of(const std::vector<Tensors>& batches) {
  Labels labels;
  for (const auto& batch : batches) {
    const auto* first = batch[0].const_data_ptr<std::int64_t>();
    labels.emplace_back(first, first + batch[0].numel());
  }
  return labels;
}

std::string error_of(DataLoader loader) {
  auto loop = loader.batches();
  try {
    rest(loop);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

/// The state after so many batches, and what comes after them.
std::pair<c10::IValue, std::vector<Tensors>> cut(DataLoader loader, int after) {
  auto loop = loader.batches();
  for (int batch = 0; batch < after; ++batch) loop.next();
  auto state = through_checkpoint(loader.state());
  return {state, rest(loop)};
}

}  // namespace

TEST_CASE("batches come from the shards in turn, and a shard that has ended is left out") {
  DataLoader loader("lines", std::make_shared<Lines>(13), {.batch_size = 2, .num_workers = 3});
  CHECK(labels_of(epoch(loader)) == Labels{{0, 3}, {1, 4}, {2, 5}, {6, 9}, {7, 10}, {8, 11}, {12}});
  DataLoader whole("lines", std::make_shared<Lines>(13), {.batch_size = 2, .drop_last = true, .num_workers = 3});
  CHECK(labels_of(epoch(whole)) == Labels{{0, 3}, {1, 4}, {2, 5}, {6, 9}, {7, 10}, {8, 11}});
  DataLoader alone("lines", std::make_shared<Lines>(3), {.batch_size = 2});
  CHECK(labels_of(epoch(alone)) == Labels{{0, 1}, {2}});
  DataLoader none("lines", std::make_shared<Lines>(0), {.num_workers = 2});
  CHECK(epoch(none).empty());
}

TEST_CASE("each rank has shards of its own") {
  DataLoader loader("lines", std::make_shared<Lines>(12), {.batch_size = 2, .num_workers = 2});
  std::vector<Labels> of_ranks;
  for (int rank : {0, 1}) {
    const AsRank as_rank(rank, 2);
    of_ranks.push_back(labels_of(epoch(loader)));
  }
  CHECK(of_ranks[0] == Labels{{0, 4}, {1, 5}, {8}, {9}});
  CHECK(of_ranks[1] == Labels{{2, 6}, {3, 7}, {10}, {11}});
}

TEST_CASE("data workers give the same stream as this process, and leave its generator alone") {
  Loaders here;
  at::manual_seed(5);
  auto lines = epoch(here.lines), again = epoch(here.lines), one_shard = epoch(here.one_shard),
       whole = epoch(here.whole);
  auto drawn = at::rand({5});
  CHECK(lines.size() == 26);
  CHECK(whole.size() == 12);
  CHECK_FALSE(at::equal(lines.front()[1], again.front()[1]));
  for (int count : {1, 2}) {
    DataWorkers workers(count);
    Loaders loaders;
    at::manual_seed(5);
    CHECK(equal(epoch(loaders.lines), lines));
    CHECK(equal(epoch(loaders.lines), again));
    CHECK(digest_of(loaders.lines) == digest_of(here.lines));
    CHECK(equal(epoch(loaders.one_shard), one_shard));
    CHECK(equal(epoch(loaders.whole), whole));
    CHECK(at::equal(at::rand({5}), drawn));
  }
}

TEST_CASE("a stream is read again up to where it was when a data worker is killed") {
  Loaders here;
  auto expected = epoch(here.lines);
  DataWorkers workers(2);
  Loaders loaders;
  auto loop = loaders.lines.batches();
  std::vector<Tensors> got{*loop.next()};
  workers.kill(0);
  for (int batch = 0; batch < 7; ++batch) got.push_back(*loop.next());
  workers.start(0);
  workers.kill(1);
  for (auto& batch : rest(loop)) got.push_back(batch);
  CHECK(equal(got, expected));
  CHECK(digest_of(loaders.lines) == digest_of(here.lines));
}

TEST_CASE("a loop over a stream goes on where a saved one was, with any number of workers") {
  for (int after : {0, 7, 26}) {
    Loaders here;
    auto [state, expected] = cut(here.lines, after);
    auto next = epoch(here.lines);
    for (int count : {0, 1, 2}) {
      DataWorkers workers(count);
      Loaders loaders;
      loaders.lines.resume(state);
      CHECK(loaders.lines.state().toGenericDict().at("batch").toInt() == after);
      CHECK(equal(epoch(loaders.lines), expected));
      CHECK(equal(epoch(loaders.lines), next));
      CHECK(digest_of(loaders.lines) == digest_of(here.lines));
    }
  }
}

TEST_CASE("a loop over a stream that ends early leaves the next one whole") {
  Loaders here;
  epoch(here.lines);
  auto expected = epoch(here.lines);
  for (int count : {0, 2}) {
    DataWorkers workers(count);
    Loaders loaders;
    {
      auto loop = loaders.lines.batches();
      loop.next();
    }
    CHECK(equal(epoch(loaders.lines), expected));
  }
}

TEST_CASE("what a stream throws comes with its place, or is left out where the run says so") {
  Loaders here;
  const std::string expected = "batch 5 in shard 0 of 1 of 'cut off': line 10 is cut off";
  CHECK(error_of(here.cut_off) == expected);
  const Labels others{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {11, 12}, {13, 14}, {15, 16}, {17, 18}, {19}};
  for (int count : {0, 1}) {
    DataWorkers workers(count, {.on_error = "skip"});
    Loaders loaders;
    CHECK(labels_of(epoch(loaders.cut_off)) == others);
  }
  DataWorkers workers(1);
  Loaders loaders;
  CHECK(error_of(loaders.cut_off) == expected + " (worker 0)");
}

TEST_CASE("a loop over a stream takes as many samples as the run asks for") {
  DataWorkers workers(1, {.units = 10});
  Loaders loaders;
  CHECK(epoch(loaders.lines).size() == 3);
}

TEST_CASE("a stream that gives other examples when it is read again is never passed on in silence") {
  SECTION("where a data worker has died") {
    DataWorkers workers(1);
    Loaders loaders;
    auto loop = loaders.fickle.batches();
    loop.next();
    workers.kill(0);
    workers.start(0);
    CHECK_THROWS_WITH(rest(loop),
                      ContainsSubstring("the stream of 'fickle' gives other examples when it is read again"));
  }
  SECTION("where it ends earlier") {
    const Gets gets;
    Loaders here, loaders;
    auto state = cut(here.shrinking, 3).first;
    loaders.shrinking.resume(state);
    auto loop = loaders.shrinking.batches();
    CHECK_THROWS_WITH(loop.next(), ContainsSubstring("gives other examples when it is read again"));
  }
  SECTION("from a saved state") {
    Loaders here, loaders;
    auto state = cut(here.fickle, 3).first;
    loaders.fickle.resume(state);
    auto loop = loaders.fickle.batches();
    CHECK_THROWS_WITH(loop.next(), ContainsSubstring("gives other examples when it is read again"));
  }
}

TEST_CASE("a state of another stream is refused with what differs") {
  Loaders here;
  auto state = cut(here.lines, 3).first;
  DataLoader three("lines", std::make_shared<Lines>(103), {.batch_size = 4, .num_workers = 3});
  CHECK_THROWS_WITH(three.resume(state), ContainsSubstring("was saved with num_workers 2, and now it is 3"));
  CHECK_THROWS_AS(here.noisy.resume(state), CheckpointError);
  torch::data::samplers::SequentialSampler sampler(103);
  auto loop = here.noisy.batches(sampler);
  loop.next();
  CHECK_THROWS_AS(three.resume(here.noisy.state()), CheckpointError);
  const AsRank as_rank(1, 2);
  Loaders loaders;
  loaders.lines.resume(state);
  CHECK_THROWS_WITH(loaders.lines.batches(),
                    ContainsSubstring("is of rank 0 of 1") && ContainsSubstring("rank 1 of 2"));
}

TEST_CASE("bad input about streams is named") {
  auto lines = std::make_shared<Lines>(4);
  CHECK_THROWS_AS(DataLoader("x", std::shared_ptr<IterableDataset>()), InvalidArgument);
  CHECK_THROWS_AS(DataLoader("", lines), InvalidArgument);
  CHECK_THROWS_AS(DataLoader("x", lines, {.num_workers = 0}), InvalidArgument);
  DataLoader stream("x", lines), indexed("y", std::make_shared<Noisy>(4));
  torch::data::samplers::SequentialSampler sampler(4);
  CHECK_THROWS_WITH(stream.batches(sampler), ContainsSubstring("call batches() without one"));
  CHECK_THROWS_WITH(indexed.batches(), ContainsSubstring("call batches() with a sampler"));
  auto sampler_of = [&](std::size_t, std::size_t) { return std::make_shared<decltype(sampler)>(sampler); };
  CHECK_THROWS_WITH(serve_data({{stream, sampler_of}}), ContainsSubstring("'x' has an iterable dataset"));
}

}  // namespace stream_test
