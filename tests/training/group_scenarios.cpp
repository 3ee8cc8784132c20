#include <ATen/ATen.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "taas/process_group.hpp"

namespace taas::test {
namespace {

using std::chrono::milliseconds;

/// What the group says of itself.
void identity() {
  auto group = init({.backend = Backend::kGloo});
  expect(group.device().is_cpu(), "gloo works on the CPU");
  expect(group.backend() == (group.world_size() == 1 ? "none" : "gloo"), "backend name");
  expect((group.native() == nullptr) == (group.world_size() == 1), "native");
  expect(group.local_world_size() == group.world_size(), "one machine");
  auto copy = group;
  auto tensor = at::ones({1});
  all_reduce(copy, tensor);
  expect(tensor.item<int>() == group.world_size(), "a copy is the same group");
}

/// Only the first rank comes: a second one might itself be late in the eyes of the first.
void missing_rank() {
  const auto text =
      text_of<CommunicationError>([] { init({.backend = Backend::kGloo, .timeout = milliseconds(3000)}); });
  expect(contains(text, "waited in vain for ranks 1, 2 of 3 to join through the store at 127.0.0.1:"), text);
}

void no_store() {
  const auto text = text_of<CommunicationError>([] { init({.timeout = milliseconds(500)}); });
  expect(contains(text, "cannot reach the store at 127.0.0.1:") && !contains(text, "\n"), text);
}

/// Rank 0 leaves; the others are told so instead of waiting for ever.
void lost_rank() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  auto tensor = at::ones({4});
  all_reduce(group, tensor);
  if (group.rank() == 0) return;
  const auto text = text_of<CommunicationError>([&] { all_reduce(group, tensor); });
  expect(contains(text, "rank " + std::to_string(group.rank()) + ", all_reduce of (4) Float: "), text);
}

/// Rank 0 drops the group in the middle: nobody waits for it until a timeout.
void aborted() {
  auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  barrier(group);
  auto tensor = at::ones({4});
  if (group.rank() == 0) {
    auto work = all_reduce_async(group, tensor);
    group.abort();
    text_of<CommunicationError>([&] { work.wait(); });
  } else if (group.rank() == 1) {
    text_of<CommunicationError>([&] { recv(group, tensor, 0); });
  } else {
    text_of<CommunicationError>([&] { recv(group, tensor, 1); });  // waits for a rank that waits for the lost one
  }
}

/// One group after the other, and two at once.
void second_init() {
  for (int round = 0; round < 3; ++round) {
    auto first = init({.backend = Backend::kGloo});
    auto second = init({.backend = Backend::kGloo});
    for (const auto& group : {first, second}) {
      auto tensor = at::ones({4});
      all_reduce(group, tensor);
      expect(tensor[0].item<int>() == group.world_size(), "a sum over " + std::to_string(round));
    }
    first.shutdown();
  }
}

/// Writes to a pipe that nobody reads.
void write_in_vain() {
  std::array<int, 2> ends{};
  expect(::pipe(ends.data()) == 0, "no pipe");
  ::close(ends[0]);
  expect(::write(ends[1], "x", 1) < 0 && errno == EPIPE, "a write to a closed pipe has to fail");
  ::close(ends[1]);
}

/// What a rank would do to the sockets of one that went away.
void broken_pipe() {
  std::signal(SIGPIPE, SIG_DFL);  // whatever started the tests may ignore it
  auto group = init({.backend = Backend::kGloo});
  write_in_vain();
  barrier(group);
}

volatile std::sig_atomic_t own_handler_ran = 0;

void broken_pipe_handled() {
  std::signal(SIGPIPE, [](int) { own_handler_ran = 1; });
  auto group = init({.backend = Backend::kGloo});
  write_in_vain();
  expect(own_handler_ran == 1, "the program's own handler of SIGPIPE is gone");
  barrier(group);
}

void different_wishes() {
  const bool first = std::string(std::getenv("RANK")) == "0";
  const auto text = text_of<ConfigError>([&] { init({.backend = first ? Backend::kNccl : Backend::kGloo}); });
  expect(text == "rank 0 asks for nccl but rank 1 asks for gloo", text);
}

void shutdown() {
  auto group = init();
  auto tensor = at::ones({4});
  all_reduce(group, tensor);
  auto copy = group;
  group.shutdown();
  copy.shutdown();  // the same group: nothing is left to do
  try {
    auto other = group;
    throw std::runtime_error("unwinds");
  } catch (const std::runtime_error&) {
  }
}

}  // namespace

std::map<std::string, Scenario> group_scenarios() {
  return {{"identity", identity},
          {"missing_rank", missing_rank},
          {"no_store", no_store},
          {"lost_rank", lost_rank},
          {"aborted", aborted},
          {"second_init", second_init},
          {"broken_pipe", broken_pipe},
          {"broken_pipe_handled", broken_pipe_handled},
          {"different_wishes", different_wishes},
          {"shutdown", shutdown}};
}

}  // namespace taas::test
