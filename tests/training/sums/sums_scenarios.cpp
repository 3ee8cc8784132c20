// Sums in memory that the ranks share, and what becomes of those that can never be made.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "training/ddp/shared_memory.hpp"

namespace taas::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::seconds(60);

ProcessGroup gloo_group() { return init({.backend = Backend::kGloo, .timeout = kLong}); }

std::shared_ptr<SharedSums> sums_of(const ProcessGroup& group, milliseconds timeout = kLong) {
  auto sums = share_sums(group, timeout);
  expect(sums != nullptr, "ranks on one machine share no memory");
  return sums;
}

bool is_last(const ProcessGroup& group) { return group.rank() == group.world_size() - 1; }

/// Of different sizes, so that each order of adding has a sum of its own.
at::Tensor some_numbers(std::int64_t count, at::ScalarType type) {
  return at::randn({count}, type) * at::exp(5 * at::randn({count}, type));
}

void check_equal(const ProcessGroup& group, SharedSums& sums, std::int64_t count, at::ScalarType type) {
  auto mine = some_numbers(count, type);
  auto other = mine.clone();
  expect(sums.take(mine), "not taken: " + std::to_string(count));
  sums.sum(mine);
  all_reduce(group, other);
  expect(at::equal(mine, other), std::to_string(count) + " elements differ");
}

void shared_sums() {
  auto group = gloo_group();
  auto sums = sums_of(group);
  at::manual_seed(group.rank());
  const auto most = static_cast<std::int64_t>(SharedSums::most_bytes(group.world_size()) / sizeof(float));
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{7},
                                     std::int64_t{1000}, std::int64_t{4160}, most}) {
      check_equal(group, *sums, count, at::kFloat);
      check_equal(group, *sums, count / 2, at::kDouble);
    }
  }
  expect(!sums->take(at::ones({most + 1})), "a large tensor is taken");
  expect(!sums->take(at::ones({4}, at::kInt)), "whole numbers are taken");
  expect(!sums->take(at::ones({4}, at::kHalf)), "16 bits are taken");
  expect(!sums->take(at::ones({4, 4}).t().slice(0, 0, 2)), "a tensor with gaps is taken");
  expect(!sums->take(at::ones({4}).to_sparse()), "a sparse tensor is taken");
}

/// Each rank is the slowest one now and then: the others sleep, and wake up.
void shared_sums_apart() {
  constexpr int kSums = 600;
  auto group = gloo_group();
  auto sums = sums_of(group);
  const auto work = at::ones({200, 200});
  for (int number = 0; number < kSums; ++number) {
    if (number % 7 == group.rank()) work.mm(work);
    auto tensor = at::full({1 + number}, number * 10 + group.rank(), at::kDouble);
    sums->sum(tensor);
    const int ranks = group.world_size();
    const auto expected = at::full({1 + number}, ranks * number * 10 + ranks * (ranks - 1) / 2, at::kDouble);
    expect(at::equal(tensor, expected), "sum " + std::to_string(number) + " is wrong");
  }
}

struct Training {
  explicit Training(const ProcessGroup& group) : model(network, group) {
    for (int i = 0; i < 2; ++i) step();  // with the second one buckets are settled, which gloo does
  }
  void step() {
    model.zero_grad();
    model(at::ones({2, 8})).sum().backward();
  }

  torch::nn::Sequential network{torch::nn::Linear(8, 8), torch::nn::Linear(8, 8)};
  DistributedDataParallel<torch::nn::SequentialImpl> model;
};

void shared_sums_not_wanted() {
  auto group = gloo_group();
  if (group.rank() == 1) ::setenv("TAAS_SHARED_MEMORY", "0", 1);
  expect(share_sums(group, kLong) == nullptr, "memory is shared");
  Training training(group);
}

void shared_sum_of_another_size() {
  auto group = gloo_group();
  auto sums = sums_of(group);
  auto tensor = is_last(group) ? at::ones({8}, at::kDouble) : at::ones({3});
  const auto text = text_of<std::runtime_error>([&] { sums->sum(tensor); });
  const auto expected = is_last(group) ? "rank 0 gives 12 bytes of Float, this rank 64 of Double"
                                       : "rank 2 gives 64 bytes of Double, this rank 12 of Float";
  expect(text == expected, text);
  expect(at::equal(tensor, at::ones_like(tensor)), "a sum that was not made has changed its tensor");
}

void shared_sum_that_is_too_late() {
  auto group = gloo_group();
  auto sums = sums_of(group, milliseconds(200));
  if (!is_last(group)) {
    auto tensor = at::ones({3});
    const auto text = text_of<std::runtime_error>([&] { sums->sum(tensor); });
    expect(contains(text, "has not come within 200 ms"), text);
  }
  barrier(group);
}

/// By another thread of rank 0, while all but the last rank wait for a part that never comes.
void shared_sum_in_an_aborted_group() {
  auto meeting = gloo_group();
  auto group = gloo_group();
  Training training(group);
  barrier(group);
  if (is_last(group)) return barrier(meeting);
  std::thread other([&] {
    if (group.rank() == 0) group.abort();
  });
  const auto text = text_of<CommunicationError>([&] { training.step(); });
  other.join();
  expect(contains(text, group.rank() == 0 ? ", all_reduce of (144) Float: this rank has aborted the group"
                                          : ", all_reduce of (144) Float: rank 0 has left"),
         text);
  barrier(meeting);
}

void training_with_a_rank_that_raises() {
  const auto run = [] {
    auto group = gloo_group();
    Training training(group);
    training.step();
    if (is_last(group)) throw std::invalid_argument("the data is damaged");
    const auto text = text_of<CommunicationError>([&] { training.step(); });
    expect(contains(text, ", all_reduce of (144) Float: rank 2 has left with an error of its own"), text);
  };
  try {
    run();
  } catch (const std::invalid_argument&) {
  }
}

/// What it has given before counts. One that waits for it may see first that another has given up.
void training_with_a_rank_that_shuts_down() {
  auto group = gloo_group();
  Training training(group);
  if (is_last(group)) return group.shutdown();
  const auto text = text_of<CommunicationError>([&] { training.step(); });
  expect(contains(text, ", all_reduce of (144) Float: ") && contains(text, "has left the group"), text);
}

}  // namespace

std::map<std::string, Scenario> sums_scenarios() {
  return {{"shared_sums", shared_sums},
          {"shared_sums_apart", shared_sums_apart},
          {"shared_sums_not_wanted", shared_sums_not_wanted},
          {"shared_sum_of_another_size", shared_sum_of_another_size},
          {"shared_sum_that_is_too_late", shared_sum_that_is_too_late},
          {"shared_sum_in_an_aborted_group", shared_sum_in_an_aborted_group},
          {"training_with_a_rank_that_raises", training_with_a_rank_that_raises},
          {"training_with_a_rank_that_shuts_down", training_with_a_rank_that_shuts_down}};
}

}  // namespace taas::test
