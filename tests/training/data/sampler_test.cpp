#include "taas/sampler.hpp"

#include <ATen/Functions.h>
#include <torch/serialize/archive.h>

#include <sstream>

#include "catch.hpp"
#include "taas/error.hpp"

namespace sampler_test {

// That the order is Python's, index for index, is tested by sampler_reference.py.
namespace {

using taas::DistributedSampler;
using Indices = std::vector<std::size_t>;

Indices all(DistributedSampler sampler) { return sampler.next(1'000'000).value_or(Indices{}); }

DistributedSampler in_order(std::size_t size, std::size_t world, std::size_t rank, bool drop_last = false) {
  return {size, {.num_replicas = world, .rank = rank, .shuffle = false, .drop_last = drop_last}};
}

}  // namespace

TEST_CASE("each rank takes every world-size-th index") {
  CHECK(all(in_order(6, 2, 0)) == Indices{0, 2, 4});
  CHECK(all(in_order(6, 2, 1)) == Indices{1, 3, 5});
}

TEST_CASE("an uneven tail is filled up from the front, or dropped") {
  CHECK(all(in_order(5, 2, 1)) == Indices{1, 3, 0});
  CHECK(all(in_order(5, 2, 1, true)) == Indices{1, 3});
}

TEST_CASE("a dataset smaller than the world goes round as often as it takes, or is empty") {
  CHECK(all(in_order(3, 8, 7)) == Indices{1});
  CHECK(in_order(3, 8, 7, true).size() == 0);
  CHECK(all(in_order(3, 8, 7, true)).empty());
}

TEST_CASE("an empty dataset gives no batch") {
  CHECK(all(in_order(0, 4, 3)).empty());
  CHECK(all(DistributedSampler(0, {.num_replicas = 2, .rank = 1})).empty());
}

TEST_CASE("the ranks share a shuffled epoch without overlap") {
  std::vector<bool> seen(1000);
  for (std::size_t rank = 0; rank < 8; ++rank)
    for (auto index : all(DistributedSampler(1000, {.num_replicas = 8, .rank = rank, .seed = 3}))) {
      CHECK_FALSE(seen[index]);
      seen[index] = true;
    }
  CHECK(std::find(seen.begin(), seen.end(), false) == seen.end());
}

TEST_CASE("an epoch has its own order, which set_epoch brings back") {
  DistributedSampler sampler(100, {.seed = 5});
  auto first = sampler.indices();
  sampler.set_epoch(1);
  CHECK_FALSE(at::equal(first, sampler.indices()));
  sampler.set_epoch(0);
  CHECK(at::equal(first, sampler.indices()));
}

TEST_CASE("batches have the size asked for, the last one the rest") {
  auto sampler = in_order(10, 2, 0);
  CHECK(sampler.next(2) == Indices{0, 2});
  CHECK(sampler.next(2) == Indices{4, 6});
  CHECK(sampler.next(2) == Indices{8});
  CHECK_FALSE(sampler.next(2));
  sampler.reset();
  CHECK(sampler.next(2) == Indices{0, 2});
  sampler.reset(4);
  CHECK(all(sampler) == Indices{0, 2});
}

TEST_CASE("epoch and position go through an archive") {
  DistributedSampler sampler(50, {.num_replicas = 2, .rank = 1});
  sampler.set_epoch(3);
  sampler.reset();
  sampler.next(7);
  torch::serialize::OutputArchive written;
  sampler.save(written);
  std::stringstream stream;
  written.save_to(stream);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  DistributedSampler other(50, {.num_replicas = 2, .rank = 1});
  other.load(archive);
  CHECK(other.epoch() == 3);
  CHECK(all(other) == all(sampler));
}

TEST_CASE("a rank outside the world is refused by name") {
  CHECK_THROWS_AS(DistributedSampler(10, {.num_replicas = 2, .rank = 2}), taas::InvalidArgument);
  CHECK_THROWS_WITH(DistributedSampler(10, {.num_replicas = 4, .rank = 9}), ContainsSubstring("rank 9"));
  CHECK_THROWS_AS(DistributedSampler(10, {.num_replicas = 0, .rank = 0}), taas::InvalidArgument);
}

}  // namespace sampler_test
