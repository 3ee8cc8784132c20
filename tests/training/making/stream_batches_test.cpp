#include "training/making/stream_batches.hpp"

#include "catch.hpp"
#include "taas/error.hpp"
#include "training/data/shard_order.hpp"
#include "training/stream_examples.hpp"

namespace stream_batches_test {

using namespace taas;
using namespace taas::test;

namespace {

StreamTask task_of(std::uint64_t turn, std::uint64_t worker = 0) {
  return {
      .seeds = {.initial = 1, .rank = 0, .loader = 2, .epoch = 3}, .worker = worker, .num_workers = 2, .turn = turn};
}

StreamBatches batches_of(std::shared_ptr<IterableDataset> dataset) {
  return {StreamRecipe{"lines", std::move(dataset), stack, 2, false}, 2};
}

std::int64_t first_of(const FreshBatch& batch) { return batch.tensors.at(0)[0].item<std::int64_t>(); }

StreamPosition start() { return {.rank = 0, .world_size = 1, .next = {}, .ended = {}, .chains = {0, 0}}; }

std::vector<std::pair<std::uint64_t, std::uint64_t>> places(ShardOrder& order, int count) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (int place = 0; place < count; ++place) {
    auto task = order.next();
    if (!task) break;
    found.emplace_back(task->shard->turn, task->shard->worker);
  }
  return found;
}

/// A dataset whose author has forgotten something.
struct NoExamples : IterableDataset {
  std::unique_ptr<Examples> examples(const Shard& /*shard*/) override { return nullptr; }
};

}  // namespace

TEST_CASE("tasks of a stream are the same behind the wire, and others are refused") {
  auto bytes = task_of(5, 1).to_bytes();
  auto read = StreamTask::from_bytes(bytes);
  REQUIRE(read);
  CHECK(read->to_bytes() == bytes);
  CHECK(read->number() == 11);
  CHECK(read->shard().epoch == 3);
  CHECK(StreamTask::shard_in(bytes) == StreamTask::shard_in(task_of(6, 1).to_bytes()));
  CHECK(StreamTask::shard_in(bytes) != StreamTask::shard_in(task_of(5, 0).to_bytes()));
  CHECK_FALSE(StreamTask::from_bytes(DataTask{.seed = 1, .indices = {1, 2, 3, 4, 5, 6, 7}}.to_bytes()));
  CHECK_THROWS_WITH(batches_of(std::make_shared<Lines>(9)).make("x"), ContainsSubstring("of another release"));
}

TEST_CASE("a batch's head is told apart from what it is made of") {
  const StreamHead head{.before = 18446744073709551615U, .examples = 4};
  auto [found, rest] = split_head(head.to_text() + "Float[4,3] Long[4]");
  REQUIRE(found);
  CHECK(found->before == head.before);
  CHECK(found->examples == 4);
  for (const auto* plain : {"Float[4,3]", "", "7:", "7:4", "a:4 Float[1]"}) {
    CHECK_FALSE(split_head(plain).head.has_value());
    CHECK(split_head(plain).rest == plain);
  }
}

TEST_CASE("any batch can be had at any time, and again, with the same chain in front of it") {
  auto batches = batches_of(std::make_shared<Lines>(20));
  auto third = batches.make(task_of(2).to_bytes());
  CHECK(first_of(third) == 8);
  CHECK(first_of(batches.make(task_of(0).to_bytes())) == 0);
  CHECK(first_of(batches.make(task_of(1, 1).to_bytes())) == 5);
  CHECK(first_of(batches.make(task_of(1).to_bytes())) == 4);
  auto again = batches.make(task_of(2).to_bytes());
  CHECK(again.head->before == third.head->before);
  CHECK(at::equal(again.tensors[1], third.tensors[1]));
  batches.forget();
  CHECK(at::equal(batches.make(task_of(2).to_bytes()).tensors[1], third.tensors[1]));
}

TEST_CASE("behind the end of a shard is the end, with the chain over all batches in front of it") {
  auto batches = batches_of(std::make_shared<Lines>(20)), others = batches_of(std::make_shared<Lines>(16));
  auto end = batches.make(task_of(5).to_bytes());
  CHECK(end.head->is_end());
  CHECK(end.tensors.empty());
  auto far = batches.make(task_of(9).to_bytes());
  CHECK(far.head->is_end());
  CHECK(far.head->before == end.head->before);
  CHECK(first_of(batches.make(task_of(4).to_bytes())) == 16);
  CHECK(batches.make(task_of(5).to_bytes()).head->before == end.head->before);
  CHECK(others.make(task_of(5).to_bytes()).head->is_end());
  CHECK(others.make(task_of(5).to_bytes()).head->before != end.head->before);
}

TEST_CASE("a dataset that gives no pass is named") {
  CHECK_THROWS_WITH(batches_of(std::make_shared<NoExamples>()).make(task_of(0).to_bytes()),
                    ContainsSubstring("shard 0 of 2 of 'lines': examples() gave a null pointer"));
}

TEST_CASE("shards take turns until all have ended") {
  using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  ShardOrder order(task_of(0), start());
  CHECK(places(order, 3) == Places{{0, 0}, {0, 1}, {1, 0}});
  order.ended({.bytes = {}, .shard = ShardPlace{0, 0}});
  CHECK(places(order, 2) == Places{{1, 1}, {2, 1}});
  order.ended({.bytes = {}, .shard = ShardPlace{2, 1}});
  CHECK(places(order, 2).empty());
  auto position = start();
  position.next = {4, 1};
  position.ended = {0};
  ShardOrder later(task_of(0), position);
  CHECK(places(later, 2) == Places{{4, 1}, {5, 1}});
  ShardOrder own(task_of(0), start());
  own.keep_homes(1, 2);
  CHECK(places(own, 2) == Places{{0, 1}, {1, 1}});
}

}  // namespace stream_batches_test
