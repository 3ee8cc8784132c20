#include <ATen/ATen.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "group/scenario_tensors.hpp"
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
  if (std::string(std::getenv("RANK")) != "0") return;
  const auto text =
      text_of<CommunicationError>([] { init({.backend = Backend::kGloo, .timeout = milliseconds(3000)}); });
  expect(contains(text, "waited in vain for ranks 1, 2 of 3 to join through the store at 127.0.0.1:"), text);
}

void no_store() {
  const auto text = text_of<CommunicationError>([] { init({.timeout = milliseconds(500)}); });
  expect(contains(text, "cannot reach the store at 127.0.0.1:") && !contains(text, "\n"), text);
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

/// One group after the other, and two at once. A group ends once, on all its copies.
void second_init() {
  for (int round = 0; round < 3; ++round) {
    auto first = init({.backend = Backend::kGloo});
    auto second = init({.backend = Backend::kGloo});
    for (const auto& group : {first, second}) {
      auto tensor = at::ones({4});
      all_reduce(group, tensor);
      expect(tensor[0].item<int>() == group.world_size(), "a sum over " + std::to_string(round));
    }
    const auto copy = first;
    first.shutdown();
    copy.shutdown();
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

/// The sum of the members' ranks in the whole run.
int sum_of_ranks(const ProcessGroup& group, int rank) {
  auto tensor = at::full({3}, rank, here(at::kInt));
  all_reduce(group, tensor);
  return tensor[0].item<int>();
}

/// Some ranks in an order of their own, next to a group of all; a group of one; one within another.
void sub_groups() {
  auto all = join_here();
  auto backwards = new_group(all, {3, 1, 0});
  expect(backwards.has_value() == (all.rank() != 2), "rank 2 is in no group");
  auto alone = new_group(all, {2}, {.timeout = std::chrono::seconds(5)});
  if (backwards) {
    expect(backwards->ranks() == std::vector<int>{3, 1, 0}, "ranks");
    expect(backwards->ranks()[static_cast<std::size_t>(backwards->rank())] == all.rank(), "rank");
    expect(backwards->local_rank() == all.local_rank() && backwards->device() == all.device(), "place");
    expect(sum_of_ranks(*backwards, all.rank()) == 4, "sum of the ranks 0, 1 and 3");
    auto inner = new_group(*backwards, {0, 2});  // 3 and 0 of the run
    if (inner) expect(inner->ranks() == std::vector<int>{3, 0} && sum_of_ranks(*inner, all.rank()) == 3, "nested");
  } else {
    expect(alone && alone->world_size() == 1 && sum_of_ranks(*alone, 2) == 2, "a group of one");
  }
  expect(sum_of_ranks(all, all.rank()) == 6, "the first group");
}

/// Even and odd ranks, the highest first; rank 3 in none.
void split_groups() {
  auto all = join_here();
  const auto color = all.rank() == 3 ? std::nullopt : std::optional<int>(all.rank() % 2);
  auto part = split(all, color, -all.rank());
  expect(part.has_value() == color.has_value(), "a rank without a color is in no group");
  if (part) expect(part->ranks() == (all.rank() % 2 == 0 ? std::vector<int>{2, 0} : std::vector<int>{1}), "members");
  if (part && part->world_size() == 2) expect(sum_of_ranks(*part, all.rank()) == 2, "sum of 0 and 2");
  auto again = split(all, 0);
  expect(again && again->ranks() == all.ranks(), "all of one color");
}

/// Another shape and another operation on one rank.
void mismatches() {
  auto all = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60), .check_collectives = true});
  auto tensor = at::ones({4});
  all_reduce(all, tensor);
  expect(tensor[0].item<int>() == all.world_size(), "what fits is done");
  auto other = at::ones({all.rank() == 1 ? 8765 : 4});
  const auto text =
      text_of<CommunicationError>([&] { all.rank() == 1 ? all_reduce(all, other) : broadcast(all, other); });
  expect(contains(text, "BROADCAST") && contains(text, "ALLREDUCE"), text);
  expect(contains(text, "8765") && !contains(text, "\n"), text);
}

}  // namespace

std::map<std::string, Scenario> group_scenarios() {
  return {{"identity", identity},
          {"missing_rank", missing_rank},
          {"no_store", no_store},
          {"aborted", aborted},
          {"second_init", second_init},
          {"broken_pipe", broken_pipe},
          {"broken_pipe_handled", broken_pipe_handled},
          {"different_wishes", different_wishes},
          {"sub_groups", sub_groups},
          {"split_groups", split_groups},
          {"mismatches", mismatches}};
}

}  // namespace taas::test
