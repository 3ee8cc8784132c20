// Ranks that are lost, or leave with an error, while the others are in a collective: each of these raises, and names
// the one that is to blame.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using Clock = std::chrono::steady_clock;
using Step = std::function<void(const ProcessGroup& group)>;

constexpr int kStepsBefore = 3;
constexpr std::int64_t kElements = 1 << 16;

int last_rank(const ProcessGroup& group) { return group.world_size() - 1; }

[[noreturn]] void die() {
  ::raise(SIGKILL);
  std::abort();
}

/// Steps until one fails. Tells how long it took since the one before was through.
void expect_loss(const ProcessGroup& group, int lost, const Step& step) {
  auto before = Clock::now();
  const auto text = text_of<CommunicationError>([&] {
    for (;; before = Clock::now()) step(group);
  });
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
  std::cout << "rank " << group.rank() << " raised after " << took.count() << " ms\n";
  expect(contains(text, "rank " + std::to_string(group.rank()) + ", ") &&
             contains(text, "rank " + std::to_string(lost) + " is gone"),
         text);
}

/// Rank 1 gives more than rank 0 has room for.
void larger_tensor() {
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  auto tensor = at::ones({group.rank() == 1 ? 4096 : 4});
  all_reduce(group, tensor);
}

/// The last rank is killed right after it has begun its fourth step.
void killed_in(const Step& step) {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  for (int i = 0; i < kStepsBefore; ++i) step(group);
  if (group.rank() != last_rank(group)) return expect_loss(group, last_rank(group), step);
  std::thread([&] { step(group); }).detach();
  die();
}

at::Tensor rows(const ProcessGroup& group) { return at::ones({group.world_size(), kElements}); }

void killed_in_all_reduce() {
  killed_in([](const ProcessGroup& group) {
    auto tensor = at::ones({kElements});
    all_reduce(group, tensor);
  });
}
void killed_in_broadcast() {
  killed_in([](const ProcessGroup& group) {
    auto tensor = at::ones({kElements});
    broadcast(group, tensor, last_rank(group));
  });
}
void killed_in_all_gather() {
  killed_in([](const ProcessGroup& group) {
    auto all = rows(group);
    all_gather(group, all, at::ones({kElements}));
  });
}
void killed_in_reduce_scatter() {
  killed_in([](const ProcessGroup& group) {
    auto one = at::ones({kElements});
    reduce_scatter(group, one, rows(group));
  });
}
void killed_in_gather() {
  killed_in([](const ProcessGroup& group) {
    auto all = rows(group);
    gather(group, all, at::ones({kElements}), 0);
  });
}
void killed_in_scatter() {
  killed_in([](const ProcessGroup& group) {
    auto one = at::ones({kElements});
    scatter(group, one, rows(group), last_rank(group));
  });
}
void killed_in_barrier() {
  killed_in([](const ProcessGroup& group) { barrier(group); });
}
void killed_in_send_recv() {
  killed_in([](const ProcessGroup& group) {
    const int size = group.world_size();
    send_recv(group, {{at::ones({kElements}), (group.rank() + 1) % size}},
              {{at::ones({kElements}), (group.rank() + size - 1) % size}});
  });
}

/// Between the gradients of two layers, in backward.
void killed_in_backward() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  torch::nn::Sequential network(torch::nn::Linear(64, 64), torch::nn::Linear(64, 64), torch::nn::Linear(64, 64));
  DistributedDataParallel model(network, group, {.bucket_cap_mb = 0.001});
  int steps = 0;
  const Step step = [&](const ProcessGroup&) {
    auto loss = model(at::ones({2, 64})).sum();
    if (++steps > kStepsBefore && group.rank() == last_rank(group)) {
      network->parameters()[2].register_hook([](const at::Tensor&) { die(); });
    }
    loss.backward();
    model.zero_grad();
  };
  for (int i = 0; i < kStepsBefore; ++i) step(group);
  expect_loss(group, last_rank(group), step);
}

/// Known to all ranks of one test, whose parent is the same.
std::filesystem::path file_of_killed() {
  return std::filesystem::temp_directory_path() / ("taas-killed-" + std::to_string(::getppid()) + ".pt");
}

/// With what a save that was cut off has left beside it.
void remove_files_of_killed() {
  const auto path = file_of_killed();
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    if (entry.path().filename().string().starts_with(path.filename().string())) std::filesystem::remove(entry.path());
  }
}

/// Rank 0 writes, and the others wait for it. The sleep chooses where in its saves it is killed.
void killed_in_checkpoint() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  barrier(group);
  if (group.rank() != 0) {
    expect_loss(group, 0, [](const ProcessGroup& all) { barrier(all); });
    if (group.rank() == 1) remove_files_of_killed();
    return;
  }
  const auto path = file_of_killed().string();
  std::thread([path] {
    for (;;) save_checkpoint(path, {.epoch = 1, .model = {{"weight", at::ones({1 << 22})}}});
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  die();
}

/// An error of a rank's own is what the others are told of, also when they are told by one that gave up because of it.
void raises() {
  const auto reason = [] { throw std::runtime_error("the data is damaged"); };
  const auto run = [&] {
    auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
    auto tensor = at::ones({kElements});
    all_reduce(group, tensor);
    if (group.rank() == last_rank(group)) reason();
    const auto text = text_of<CommunicationError>([&] {
      for (;;) all_reduce(group, tensor);
    });
    expect(contains(text, "rank " + std::to_string(last_rank(group)) + " has left with an error of its own"), text);
  };
  try {
    run();
  } catch (const std::runtime_error& error) {
    expect(contains(error.what(), "damaged"), error.what());
  }
}

/// With a reduction under way that will never end.
void exits() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  auto tensor = at::ones({kElements});
  all_reduce(group, tensor);
  if (group.rank() == last_rank(group)) {
    auto work = all_reduce_async(group, tensor);
    std::exit(0);
  }
  expect_loss(group, last_rank(group), [&](const ProcessGroup& all) { all_reduce(all, tensor); });
}

/// One rank is at its end while the others wait for it.
void returns() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  auto tensor = at::ones({kElements});
  all_reduce(group, tensor);
  if (group.rank() == last_rank(group)) return;
  expect_loss(group, last_rank(group), [&](const ProcessGroup& all) { all_reduce(all, tensor); });
}

}  // namespace

std::map<std::string, Scenario> loss_scenarios() {
  return {{"killed_in_all_reduce", killed_in_all_reduce},
          {"killed_in_broadcast", killed_in_broadcast},
          {"killed_in_all_gather", killed_in_all_gather},
          {"killed_in_reduce_scatter", killed_in_reduce_scatter},
          {"killed_in_gather", killed_in_gather},
          {"killed_in_scatter", killed_in_scatter},
          {"killed_in_barrier", killed_in_barrier},
          {"killed_in_send_recv", killed_in_send_recv},
          {"killed_in_backward", killed_in_backward},
          {"killed_in_checkpoint", killed_in_checkpoint},
          {"larger_tensor", larger_tensor},
          {"raises", raises},
          {"exits", exits},
          {"returns", returns}};
}

}  // namespace taas::test
