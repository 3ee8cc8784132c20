// Ranks that are lost, or leave with an error, while the others are in a collective: each of these raises, and names
// the one that is to blame.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using Clock = std::chrono::steady_clock;
using Step = std::function<void()>;
/// `one` is a row of `all`, which has one for each rank.
using Collective = void (*)(const ProcessGroup& group, at::Tensor& one, at::Tensor& all);

constexpr int kStepsBefore = 3;
constexpr std::int64_t kElements = 1 << 16;
constexpr std::chrono::seconds kTimeout{60};

ProcessGroup join() { return init({.backend = Backend::kGloo, .timeout = kTimeout}); }

int last_rank(const ProcessGroup& group) { return group.world_size() - 1; }

[[noreturn]] void die() {
  ::raise(SIGKILL);
  std::abort();
}

/// Steps until one fails because of the last rank, long before its time is up.
void expect_loss(const ProcessGroup& group, const Step& step) {
  auto before = Clock::now();
  const auto text = text_of<CommunicationError>([&] {
    for (;; before = Clock::now()) step();
  });
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
  std::cout << "rank " << group.rank() << " raised after " << took.count() << " ms\n";
  expect(took < kTimeout / 2, "too late: " + text);
  expect(contains(text, "rank " + std::to_string(group.rank()) + ", ") &&
             contains(text, "rank " + std::to_string(last_rank(group)) + " is gone"),
         text);
}

/// Rank 1 gives more than rank 0 has room for.
void larger_tensor() {
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  auto group = join();
  auto tensor = at::ones({group.rank() == 1 ? 4096 : 4});
  all_reduce(group, tensor);
}

/// The last rank is killed right after it has begun its fourth step.
void killed_in(Collective collective) {
  auto group = join();
  auto one = at::ones({kElements}), all = at::ones({group.world_size(), kElements});
  const Step step = [&] { collective(group, one, all); };
  for (int i = 0; i < kStepsBefore; ++i) step();
  if (group.rank() != last_rank(group)) return expect_loss(group, step);
  std::thread(step).detach();
  die();
}

void send_around(const ProcessGroup& group, at::Tensor& one, at::Tensor& /*all*/) {
  const int size = group.world_size();
  auto received = at::empty_like(one);
  auto sending = send_async(group, one, (group.rank() + 1) % size);
  recv(group, received, (group.rank() + size - 1) % size);
  sending.wait();
}

/// Between the gradients of two layers, in backward.
void killed_in_backward() {
  auto group = join();
  torch::nn::Sequential network(torch::nn::Linear(64, 64), torch::nn::Linear(64, 64), torch::nn::Linear(64, 64));
  DistributedDataParallel model(network, group, {.bucket_cap_mb = 0.001});
  int steps = 0;
  const Step step = [&] {
    auto loss = model(at::ones({2, 64})).sum();
    if (++steps > kStepsBefore && group.rank() == last_rank(group)) {
      network->parameters()[2].register_hook([](const at::Tensor&) { die(); });
    }
    loss.backward();
    model.zero_grad();
  };
  for (int i = 0; i < kStepsBefore; ++i) step();
  expect_loss(group, step);
}

/// An error of a rank's own is what the others are told of, also when they are told by one that gave up because of it.
void raises() {
  const auto reason = [] { throw std::runtime_error("the data is damaged"); };
  const auto run = [&] {
    auto group = join();
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

/// The last rank does this while the others wait for it, and then is at its end.
void leaves(void (*at_last)(const ProcessGroup& group, at::Tensor& tensor)) {
  auto group = join();
  auto tensor = at::ones({kElements});
  all_reduce(group, tensor);
  if (group.rank() == last_rank(group)) return at_last(group, tensor);
  expect_loss(group, [&] { all_reduce(group, tensor); });
}

/// With a reduction under way that will never end.
void exit_at_once(const ProcessGroup& group, at::Tensor& tensor) {
  auto work = all_reduce_async(group, tensor);
  std::exit(0);
}

}  // namespace

std::map<std::string, Scenario> loss_scenarios() {
  std::map<std::string, Scenario> scenarios{{"killed_in_backward", killed_in_backward},
                                            {"larger_tensor", larger_tensor},
                                            {"raises", raises},
                                            {"exits", [] { leaves(exit_at_once); }},
                                            {"returns", [] { leaves([](const auto&, auto&) {}); }}};
  const std::map<std::string, Collective> collectives{
      {"all_reduce", [](const auto& group, auto& one, auto&) { all_reduce(group, one); }},
      {"broadcast", [](const auto& group, auto& one, auto&) { broadcast(group, one, last_rank(group)); }},
      {"all_gather", [](const auto& group, auto& one, auto& all) { all_gather(group, all, one); }},
      {"reduce_scatter", [](const auto& group, auto& one, auto& all) { reduce_scatter(group, one, all); }},
      {"gather", [](const auto& group, auto& one, auto& all) { gather(group, all, one, 0); }},
      {"scatter", [](const auto& group, auto& one, auto& all) { scatter(group, one, all, last_rank(group)); }},
      {"barrier", [](const auto& group, auto&, auto&) { barrier(group); }},
      {"send_recv", send_around}};
  for (const auto& [name, collective] : collectives) {
    scenarios["killed_in_" + name] = [call = collective] { killed_in(call); };
  }
  return scenarios;
}

}  // namespace taas::test
