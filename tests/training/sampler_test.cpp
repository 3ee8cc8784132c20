#include "taas/sampler.hpp"

#include <ATen/Functions.h>
#include <torch/serialize/archive.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "catch.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"

namespace sampler_test {

// That the order is Python's, index for index, is tested by sampler_reference.py.
namespace {

using taas::DistributedSampler;
using Indices = std::vector<std::size_t>;

Indices all(DistributedSampler sampler) { return sampler.next(1'000'000).value_or(Indices{}); }

DistributedSampler of_rank(std::size_t world, std::size_t rank, std::size_t size = 50, bool shuffle = true) {
  return {size, {.num_replicas = world, .rank = rank, .shuffle = shuffle, .seed = 4}};
}

/// What the sampler still gives, in the order of all ranks.
Indices rest(std::size_t world, const c10::IValue& state, std::size_t size = 50, bool shuffle = true) {
  std::vector<Indices> shares;
  for (std::size_t rank = 0; rank < world; ++rank) {
    auto sampler = of_rank(world, rank, size, shuffle);
    sampler.load_state(state);
    shares.push_back(all(sampler));
  }
  Indices together;
  for (std::size_t i = 0; i < shares[0].size(); ++i)
    for (const auto& share : shares) together.push_back(share.at(i));
  return together;
}

std::int64_t in_state(const DistributedSampler& sampler, const char* name) {
  return sampler.state().toGenericDict().at(name).toInt();
}

torch::serialize::InputArchive reopened(torch::serialize::OutputArchive& written) {
  std::stringstream stream;
  written.save_to(stream);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  return archive;
}

}  // namespace

TEST_CASE("an empty dataset gives no batch") {
  CHECK(all(of_rank(4, 3, 0, false)).empty());
  CHECK(all(of_rank(2, 1, 0)).empty());
}

TEST_CASE("batches have the size asked for, the last one the rest") {
  auto sampler = of_rank(2, 0, 10, false);
  CHECK(sampler.next(2) == Indices{0, 2});
  CHECK(sampler.next(2) == Indices{4, 6});
  CHECK(sampler.next(2) == Indices{8});
  CHECK_FALSE(sampler.next(2));
  sampler.reset();
  CHECK(sampler.next(2) == Indices{0, 2});
  sampler.reset(4);
  CHECK(all(sampler) == Indices{0, 2});
}

TEST_CASE("a sampler goes on in the middle of an epoch, through a checkpoint file or an archive") {
  auto sampler = of_rank(3, 2), from_file = of_rank(3, 2), from_archive = of_rank(3, 2);
  sampler.set_epoch(7);
  sampler.reset();
  sampler.next(5);
  const auto path = (std::filesystem::temp_directory_path() / ("sampler_test_" + std::to_string(::getpid()))).string();
  taas::save_checkpoint(path, {.extra = {{"sampler", sampler.state()}}});
  from_file.load_state(taas::load_checkpoint(path).extra.at("sampler"));
  std::filesystem::remove(path);
  torch::serialize::OutputArchive written;
  sampler.save(written);
  auto archive = reopened(written);
  from_archive.load(archive);
  CHECK(in_state(sampler, "position") == 15);
  auto whole = sampler;
  whole.reset();
  const auto epoch = all(whole);
  const auto indices = torch::tensor(std::vector<std::int64_t>(epoch.begin(), epoch.end()));
  sampler.next(3);
  for (auto* other : {&from_file, &from_archive}) {
    CHECK(other->epoch() == 7);
    CHECK(other->size() == sampler.size());
    other->next(3);
    CHECK(other->state() == sampler.state());
    CHECK(all(*other) == all(sampler));
    CHECK(at::equal(other->indices(), indices));
    other->reset();
    CHECK(all(*other) == epoch);
  }
}

TEST_CASE("ranks of another number share what is left of an epoch") {
  auto sampler = of_rank(2, 0, 11, false);
  sampler.next(2);
  CHECK(rest(2, sampler.state(), 11, false) == Indices{4, 5, 6, 7, 8, 9, 10, 0});
  CHECK(rest(1, sampler.state(), 11, false) == Indices{4, 5, 6, 7, 8, 9, 10});
  CHECK(rest(4, sampler.state(), 11, false) == Indices{4, 5, 6, 7, 8, 9, 10, 0});
  CHECK(rest(5, sampler.state(), 11, false) == Indices{4, 5, 6, 7, 8, 9, 10, 0, 1, 2});
  auto fewer = of_rank(1, 0, 11, false);
  fewer.load_state(sampler.state());
  fewer.next(3);
  CHECK(rest(2, fewer.state(), 11, false) == Indices{7, 8, 9, 10});
}

TEST_CASE("the state at the end of an epoch has nothing left, for any number of ranks") {
  DistributedSampler sampler(5, {.num_replicas = 2, .shuffle = false, .drop_last = true});
  while (sampler.next(2)) continue;
  DistributedSampler alone(5, {.shuffle = false, .drop_last = true});
  alone.load_state(sampler.state());
  CHECK_FALSE(alone.next(1));
  alone.reset();
  CHECK(alone.next(9) == Indices{0, 1, 2, 3, 4});
}

TEST_CASE("an epoch that is set but not begun is in the state when the one before is over") {
  auto sampler = of_rank(2, 0);
  sampler.set_epoch(1);
  CHECK(in_state(sampler, "epoch") == 1);
  sampler.reset();
  sampler.next(1);
  sampler.set_epoch(2);
  CHECK(in_state(sampler, "epoch") == 1);
  CHECK(in_state(sampler, "position") == 2);
  sampler.next(100);
  CHECK(in_state(sampler, "epoch") == 2);
  CHECK(in_state(sampler, "position") == 0);
}

TEST_CASE("a state that does not fit is refused with both values, and changes nothing") {
  auto sampler = of_rank(2, 1);
  sampler.next(3);
  const auto before = sampler.state();
  const auto refused = [&](const DistributedSampler& of, const char* text) {
    CHECK_THROWS_AS(sampler.load_state(of.state()), taas::CheckpointError);
    CHECK_THROWS_WITH(sampler.load_state(of.state()), ContainsSubstring(text));
    CHECK(sampler.state() == before);
  };
  refused(of_rank(2, 1, 49), "dataset_size 49, and now it is 50");
  refused(of_rank(2, 1, 50, false), "shuffle 0, and now it is 1");
  refused({50, {.num_replicas = 2, .seed = 5}}, "seed 5, and now it is 4");
  refused({50, {.num_replicas = 2, .seed = 4, .drop_last = true}}, "drop_last 1, and now it is 0");
  CHECK_THROWS_WITH(sampler.load_state(c10::IValue(3)), ContainsSubstring("not the state of a DistributedSampler"));
  CHECK_THROWS_AS(sampler.load_state(c10::IValue(3)), taas::CheckpointError);
  auto damaged = before.deepcopy();
  damaged.toGenericDict().insert_or_assign("position", -1);
  CHECK_THROWS_WITH(sampler.load_state(damaged), ContainsSubstring("position -1"));
  damaged.toGenericDict().insert_or_assign("position", "three");
  CHECK_THROWS_WITH(sampler.load_state(damaged), ContainsSubstring("'position'"));
  CHECK(sampler.state() == before);
}

TEST_CASE("an archive of something else, or of another dataset, is refused") {
  torch::serialize::OutputArchive other, foreign;
  of_rank(2, 1, 49).save(other);
  foreign.write("epoch", c10::IValue(1));
  auto sampler = of_rank(2, 1);
  auto archive = reopened(other);
  CHECK_THROWS_WITH(sampler.load(archive), ContainsSubstring("dataset_size 49, and now it is 50"));
  archive = reopened(foreign);
  CHECK_THROWS_AS(sampler.load(archive), taas::CheckpointError);
}

TEST_CASE("a rank outside the world is refused by name") {
  CHECK_THROWS_AS(DistributedSampler(10, {.num_replicas = 2, .rank = 2}), taas::InvalidArgument);
  CHECK_THROWS_WITH(DistributedSampler(10, {.num_replicas = 4, .rank = 9}), ContainsSubstring("rank 9"));
  CHECK_THROWS_AS(DistributedSampler(10, {.num_replicas = 0, .rank = 0}), taas::InvalidArgument);
}

}  // namespace sampler_test
