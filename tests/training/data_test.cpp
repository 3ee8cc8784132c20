#include "taas/data.hpp"

#include <ATen/Functions.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>

#include <cstdlib>
#include <optional>

#include "catch.hpp"
#include "data_examples.hpp"
#include "data_workers.hpp"
#include "loops.hpp"
#include "taas/error.hpp"
#include "taas/sampler.hpp"
#include "training/backend/nccl.hpp"

namespace data_test {

// Loops without data workers, and with one or two processes of data_worker_program.cpp.
namespace {

using namespace taas;
using namespace taas::test;

DistributedSampler shuffled(std::size_t size, std::uint64_t number) {
  DistributedSampler sampler(size, {.seed = 3});
  sampler.set_epoch(number);
  return sampler;
}

std::string error_of(DataLoader& loader) {
  torch::data::samplers::SequentialSampler sampler(20);
  auto loop = loader.batches(sampler);
  try {
    rest(loop);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("batches come in the sampler's order, stacked") {
  Loaders loaders;
  auto sampler = shuffled(103, 0);
  auto order = sampler.indices();
  auto batches = epoch(loaders.noisy, sampler);
  REQUIRE(batches.size() == 26);
  CHECK(batches.front()[0].sizes() == at::IntArrayRef{4, 3, 5, 7});
  CHECK(batches.back()[0].size(0) == 3);
  std::vector<at::Tensor> labels;
  for (const auto& batch : batches) labels.push_back(batch[1]);
  CHECK(at::equal(at::cat(labels), order));
}

TEST_CASE("data workers give the same bytes as this process, and leave its generator alone") {
  Loaders here;
  auto first = shuffled(103, 0), second = shuffled(103, 1);
  torch::data::samplers::RandomSampler random(50);
  at::manual_seed(5);
  auto noisy = epoch(here.noisy, first), again = epoch(here.noisy, second);
  auto noisy_digest = digest_of(here.noisy);
  auto joined = epoch(here.joined, random);
  auto joined_digest = digest_of(here.joined);
  auto drawn = at::rand({5});
  CHECK(joined.size() == 6);
  CHECK_FALSE(at::equal(noisy.front()[2], again.front()[2]));

  for (int count : {1, 2}) {
    DataWorkers workers(count);
    Loaders loaders;
    at::manual_seed(5);
    CHECK(equal(epoch(loaders.noisy, first), noisy));
    CHECK(equal(epoch(loaders.noisy, second), again));
    CHECK(digest_of(loaders.noisy) == noisy_digest);
    CHECK(equal(epoch(loaders.joined, random), joined));
    CHECK(digest_of(loaders.joined) == joined_digest);
    CHECK(at::equal(at::rand({5}), drawn));
  }
}

TEST_CASE("another seed is other noise") {
  DataLoader one("noisy", std::make_shared<Noisy>(8), {.seed = 1}),
      other("noisy", std::make_shared<Noisy>(8), {.seed = 2});
  torch::data::samplers::SequentialSampler sampler(8);
  CHECK_FALSE(equal(epoch(one, sampler), epoch(other, sampler)));
}

TEST_CASE("nothing is lost, doubled or reordered when a data worker is killed") {
  Loaders here;
  auto sampler = shuffled(103, 0);
  auto expected = epoch(here.noisy, sampler);
  DataWorkers workers(2);
  Loaders loaders;
  auto loop = loaders.noisy.batches(sampler);
  std::vector<Tensors> got{*loop.next()};
  workers.kill(0);
  for (int batch = 0; batch < 5; ++batch) got.push_back(*loop.next());
  workers.start(0);
  workers.kill(1);
  for (auto& batch : rest(loop)) got.push_back(batch);
  CHECK(equal(got, expected));
  CHECK(digest_of(loaders.noisy) == digest_of(here.noisy));
}

TEST_CASE("a loop goes on where a saved one was, with any number of workers") {
  Loaders here;
  torch::data::samplers::RandomSampler random(103);
  at::manual_seed(11);
  epoch(here.noisy, random);
  auto loop = here.noisy.batches(random);
  for (int batch = 0; batch < 7; ++batch) loop.next();
  auto state = through_checkpoint(here.noisy.state());
  auto expected = rest(loop);
  auto third = epoch(here.noisy, random);

  DataWorkers workers(2);
  Loaders loaders;
  torch::data::samplers::RandomSampler fresh(103);
  at::manual_seed(99);
  auto untouched = at::rand({2});
  at::manual_seed(99);
  loaders.noisy.resume(state);
  CHECK(loaders.noisy.state().toGenericDict().at("batch").toInt() == 7);
  CHECK(equal(epoch(loaders.noisy, fresh), expected));
  CHECK(at::equal(at::rand({2}), untouched));
  CHECK(loaders.noisy.state().toGenericDict().at("epoch").toInt() == 2);
  CHECK(third.size() == 26);
}

TEST_CASE("a loop that has begun and taken nothing is begun again in the same order") {
  Loaders here;
  torch::data::samplers::RandomSampler random(103);
  at::manual_seed(11);
  auto loop = here.noisy.batches(random);
  auto state = here.noisy.state();
  auto expected = rest(loop);
  Loaders loaders;
  loaders.noisy.resume(state);
  CHECK(equal(epoch(loaders.noisy, random), expected));
}

TEST_CASE("a loop that ends early leaves the next one whole") {
  Loaders here;
  auto first = shuffled(103, 0), second = shuffled(103, 1);
  epoch(here.noisy, first);
  auto expected = epoch(here.noisy, second);
  DataWorkers workers(2);
  Loaders loaders;
  for (auto& batch : loaders.noisy.batches(first)) {
    if (batch[0].size(0) == 4) break;
  }
  CHECK(equal(epoch(loaders.noisy, second), expected));
}

TEST_CASE("a device that is not there is named when the loop begins, with the way out") {
  torch::data::samplers::SequentialSampler sampler(8);
  auto error_for = [&sampler](at::Device device) -> std::string {
    DataLoader loader("noisy", std::make_shared<Noisy>(8), {.device = device});
    try {
      loader.batches(sampler);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(error_for(at::kMeta), ContainsSubstring("not to meta"));
  CHECK_THAT(error_for(at::Device(at::kCUDA, 99)), ContainsSubstring("cuda:99, but"));
  if (cuda_device_count() > 0) return;
  CHECK_THAT(error_for(at::kCUDA), ContainsSubstring("to go to cuda, but no GPU") && ContainsSubstring("leave"));
}

TEST_CASE("without a GPU pinned batches are the same") {
  if (cuda_device_count() > 0) return;
  Loaders here;
  auto sampler = shuffled(103, 0);
  auto expected = epoch(here.noisy, sampler);
  for (int count : {0, 1}) {
    std::optional<DataWorkers> workers;
    if (count > 0) workers.emplace(count);
    DataLoader loader("noisy", std::make_shared<Noisy>(103), {.batch_size = 4, .seed = 7, .pin_memory = true});
    CHECK(equal(epoch(loader, sampler), expected));
  }
}

TEST_CASE("batches outlive the loop, the loader and the workers") {
  std::vector<Tensors> batches;
  Loaders here;
  auto sampler = shuffled(103, 0);
  {
    DataWorkers workers(1);
    Loaders loaders;
    batches = epoch(loaders.noisy, sampler);
  }
  CHECK(equal(batches, epoch(here.noisy, sampler)));
}

TEST_CASE("what the dataset throws comes with the example's number") {
  Loaders here;
  CHECK(error_of(here.faulty) == "example 10 of 'faulty': pixel 7 is missing");
  DataWorkers workers(1);
  Loaders loaders;
  CHECK(error_of(loaders.faulty) == "example 10 of 'faulty': pixel 7 is missing (worker 0)");
}

TEST_CASE("a batch that cannot be made is left out where the run says so") {
  for (int count : {0, 1}) {
    DataWorkers workers(count, {.on_error = "skip"});
    Loaders loaders;
    torch::data::samplers::SequentialSampler sampler(20);
    auto batches = epoch(loaders.faulty, sampler);
    REQUIRE(batches.size() == 4);
    CHECK(batches[2][1].select(0, 0).item<std::int64_t>() == 12);
  }
}

TEST_CASE("a loop takes as many samples as the run asks for") {
  DataWorkers workers(1, {.units = 10});
  Loaders loaders;
  torch::data::samplers::SequentialSampler sampler(103);
  CHECK(epoch(loaders.noisy, sampler).size() == 3);
}

TEST_CASE("workers that have another dataset cannot make a batch") {
  DataWorkers workers(1);
  DataLoader other("noisy", std::make_shared<Noisy>(20));
  CHECK_THAT(error_of(other), ContainsSubstring("'noisy' over 20 examples") && ContainsSubstring("over 103"));
}

TEST_CASE("bad input is named") {
  auto dataset = std::make_shared<Noisy>(4);
  CHECK_THROWS_AS(DataLoader("", dataset), InvalidArgument);
  CHECK_THROWS_AS(DataLoader("x", dataset, {.batch_size = 0}), InvalidArgument);
  CHECK_THROWS_AS(DataLoader("x", std::shared_ptr<Dataset>()), InvalidArgument);
  CHECK_THROWS_AS(stack({{at::zeros({2})}, {at::zeros({3})}}), InvalidArgument);
  DataLoader loader("x", dataset);
  CHECK_THROWS_AS(loader.resume(c10::IValue(3)), CheckpointError);
  torch::data::samplers::SequentialSampler sampler(4);
  ::setenv("TAAS_DATA_PLAN", "/nonexistent/plan.json", 1);
  CHECK_THROWS_AS(loader.batches(sampler), ConfigError);
  ::unsetenv("TAAS_DATA_PLAN");
  ::setenv("TAAS_ROLE", "data-worker", 1);
  CHECK_THROWS_AS(serve_data({loader}), ConfigError);
  CHECK_THROWS_AS(serve_data({loader, loader}), InvalidArgument);
  ::unsetenv("TAAS_ROLE");
  CHECK_FALSE(serve_data({loader}));
}

}  // namespace data_test
