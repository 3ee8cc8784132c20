#include <ATen/Functions.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "catch.hpp"
#include "training/data_examples.hpp"
#include "training/data_workers.hpp"
#include "training/heard_events.hpp"
#include "training/loops.hpp"
#include "training/serving/prepared_batches.hpp"

namespace data_preparation_test {

// Loops whose first batches data workers have made before: data_worker_program.cpp with --loader.
namespace {

using namespace taas;
using namespace taas::test;
namespace json = boost::json;

constexpr int kExamples = 50;  // of "counted"

/// Until all workers are done: how many batches they have made.
std::uint64_t wait_until_prepared(HeardEvents& launcher, std::size_t workers) {
  std::map<std::int64_t, std::uint64_t> batches;
  while (batches.size() < workers) {
    const auto event = launcher.wait();
    REQUIRE(event.is_object());
    if (event.at("kind") != "prepared" || !event.at("done").as_bool()) continue;
    batches[event.at("worker").to_number<std::int64_t>()] = event.at("batches").to_number<std::uint64_t>();
  }
  std::uint64_t sum = 0;
  for (const auto& [worker, count] : batches) sum += count;
  return sum;
}

bool says_that_others_are_asked_for(HeardEvents& launcher) {
  for (auto event = launcher.hear(); event.is_object(); event = launcher.hear()) {
    if (event.at("kind") == "remark" &&
        event.at("text").as_string().find("ask for other batches") != json::string::npos)
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("what was prepared is what the rank would have made, and is not made again") {
  auto sampler = sampler_of_rank(0, 1);
  const auto expected = epoch(Loaders().counted, *sampler);
  for (int count : {1, 2}) {
    HeardEvents launcher;
    const Gets gets;
    DataWorkers workers(count, {.loader = "counted"});
    CHECK(wait_until_prepared(launcher, static_cast<std::size_t>(count)) == 13);
    CHECK(gets.count() == kExamples);
    Loaders loaders;
    CHECK(equal(epoch(loaders.counted, *sampler), expected));
    if (count == 1) CHECK(gets.count() == kExamples);  // of two, one may be there late, and others make its batches
    CHECK_FALSE(says_that_others_are_asked_for(launcher));
    CHECK(equal(epoch(loaders.counted, *sampler), epoch(loaders.counted, *sampler)) == false);  // later epochs
  }
}

TEST_CASE("each rank finds its own first batches") {
  HeardEvents launcher;
  const Gets gets;
  DataWorkers workers(1, {.loader = "counted", .world_size = 2});
  CHECK(wait_until_prepared(launcher, 1) == 14);
  for (int rank : {0, 1}) {
    const AsRank as_rank(rank, 2);
    Loaders loaders;
    auto sampler = sampler_of_rank(static_cast<std::size_t>(rank), 2);
    CHECK(epoch(loaders.counted, *sampler).size() == 7);
  }
  CHECK(gets.count() == kExamples);
}

TEST_CASE("a stream is prepared shard by shard, and goes on where it was prepared to") {
  const auto expected = epoch(Loaders().lines);
  for (int count : {1, 2}) {
    HeardEvents launcher;
    const Gets gets;
    DataWorkers workers(count, {.loader = "lines"});
    CHECK(wait_until_prepared(launcher, static_cast<std::size_t>(count)) == expected.size());
    CHECK(gets.count() == 103);
    Loaders loaders;
    CHECK(equal(epoch(loaders.lines), expected));
    if (count == 1) CHECK(gets.count() == 103);
    CHECK_FALSE(says_that_others_are_asked_for(launcher));
  }
}

TEST_CASE("a rank that asks for other batches gets those, and a line says so") {
  DistributedSampler other(kExamples, {.seed = 4});
  const auto expected = epoch(Loaders().counted, other);
  HeardEvents launcher;
  const Gets gets;
  DataWorkers workers(1, {.loader = "counted"});
  wait_until_prepared(launcher, 1);
  Loaders loaders;
  CHECK(equal(epoch(loaders.counted, other), expected));
  CHECK(gets.count() == 2 * kExamples);
  CHECK(says_that_others_are_asked_for(launcher));
}

TEST_CASE("another seed is other batches, which are made") {
  auto sampler = sampler_of_rank(0, 1);
  HeardEvents launcher;
  const Gets gets;
  DataWorkers workers(1, {.loader = "counted"});
  wait_until_prepared(launcher, 1);
  DataLoader other("counted", std::make_shared<Counted>(kExamples), {.batch_size = 4, .seed = 8});
  CHECK(epoch(other, *sampler).size() == 13);
  CHECK(gets.count() == 2 * kExamples);
}

TEST_CASE("a worker that dies takes what it has prepared along, and the batches stay the same") {
  auto sampler = sampler_of_rank(0, 1);
  const auto expected = epoch(Loaders().counted, *sampler);
  HeardEvents launcher;
  DataWorkers workers(2, {.loader = "counted"});
  wait_until_prepared(launcher, 2);
  Loaders loaders;
  auto loop = loaders.counted.batches(*sampler);
  std::vector<Tensors> got{*loop.next()};
  workers.kill(1);
  for (auto& batch : loop) got.push_back(batch);
  CHECK(equal(got, expected));
}

TEST_CASE("no more is kept than there is room for") {
  const auto batch = [](std::int64_t size) { return made_batch({.tensors = {at::zeros({size}, at::kByte)}}); };
  PreparedBatches batches(1000);
  batches.put("one", batch(400));
  CHECK_FALSE(batches.is_full());
  batches.put("two", batch(400));
  CHECK(batches.is_full());
  CHECK(batches.count() == 2);
  CHECK(batches.bytes() == 800);
  CHECK(batches.take("one").has_value());
  CHECK_FALSE(batches.take("one").has_value());
  CHECK_FALSE(batches.is_full());
  batches.put("three", batch(601));
  CHECK_FALSE(batches.take("three").has_value());
  CHECK(batches.is_full());
}

}  // namespace data_preparation_test
