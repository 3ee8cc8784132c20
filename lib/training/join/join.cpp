#include "taas/join.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <string>
#include <tuple>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"
#include "training/join/active_ranks.hpp"
#include "training/join/common_rank.hpp"

namespace taas {
namespace {

constexpr int kManyIterations = 1000;

void check_joinables(const Join::Joinables& joinables) {
  if (joinables.empty()) throw InvalidArgument("a join needs one joinable at least: give it the model");
  const auto* first = joinables.front().get().join_process_group().native();
  for (const Joinable& joinable : joinables) {
    if (joinable.in_join()) throw InvalidArgument("a joinable is in another join already: finish that one first");
    if (joinable.join_process_group().native() != first) {
      throw InvalidArgument("the joinables of one join must be of one process group");
    }
  }
}

/// The place of a joinable, then its call; those of the ranks that have inputs.
using PlacedCall = std::array<double, 1 + std::tuple_size_v<JoinCall>>;

PlacedCall agree_on(const ProcessGroup& group, const PlacedCall& mine) {
  auto numbers = at::empty({static_cast<std::int64_t>(mine.size())}, at::kDouble);
  std::copy(mine.begin(), mine.end(), numbers.data_ptr<double>());
  numbers = numbers.to(group.device());
  all_reduce(group, numbers, ReduceOp::kMax);
  numbers = numbers.cpu();
  PlacedCall agreed;
  std::copy_n(numbers.data_ptr<double>(), agreed.size(), agreed.begin());
  return agreed;
}

void warn_of_skew(int iterations, int rank) {
  if (iterations != kManyIterations) return;
  TORCH_WARN("rank ", rank, " has at least ", kManyIterations,
             " iterations less than other ranks: it only waits for them, so deal the inputs more evenly");
}

}  // namespace

Join::Join(Joinables joinables, const JoinOptions& options)
    : joinables_(std::move(joinables)), options_(options), exceptions_at_start_(std::uncaught_exceptions()) {
  check_joinables(joinables_);
  for (Joinable& joinable : joinables_) hooks_.push_back(joinable.join_hook(options_));
  find_gradients();
  std::size_t place = 0;
  for (Joinable& joinable : joinables_) {
    joinable.in_join_ = options_.enable;
    joinable.throws_ = options_.throw_on_early_termination;
    joinable.place_ = place++;
    joinable.is_first_ = joinable.place_ == 0;
  }
}

void Join::find_gradients() {
  const auto needs = [](const Joinable& joinable) { return joinable.needs_gradients(); };
  if (!options_.enable || std::none_of(joinables_.begin(), joinables_.end(), needs)) return;
  bool kept = false;
  for (const auto& hook : hooks_) kept |= hook->keep_gradients();
  if (!kept) {
    throw InvalidArgument(
        "a sharded optimizer of stage 1 needs the gradients of its DistributedDataParallel: give both to one join, "
        "taas::Join({model, optimizer})");
  }
}

Join::~Join() {
  if (!open_) return;
  leave();
  if (options_.enable && std::uncaught_exceptions() == exceptions_at_start_) {
    TORCH_WARN("a taas::Join has ended without finish(): ranks that still have inputs wait for this one in vain");
  }
}

void Join::leave() {
  open_ = false;
  for (Joinable& joinable : joinables_) {
    joinable.in_join_ = false;
    joinable.leave_join();
  }
}

void Join::finish() {
  if (!open_) throw InvalidArgument("this taas::Join is finished already");
  try {
    if (options_.enable) shadow();
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

void Join::shadow() {
  const auto& group = joinables_.front().get().join_process_group();
  int iterations = 0;
  bool is_last_joiner = true;
  while (const int sum = sum_over_ranks(group, 0)) {
    is_last_joiner = false;
    if (options_.throw_on_early_termination) {
      sum_over_ranks(group, 1);
      throw Exception("rank " + std::to_string(group.rank()) +
                      " has no inputs left while others have, and throw_on_early_termination is set");
    }
    if (sum < 0) {
      stand_in();
      continue;
    }
    warn_of_skew(iterations++, group.rank());
    for (const auto& hook : hooks_) hook->main_hook();
  }
  for (const auto& hook : hooks_) hook->post_hook(is_last_joiner);
}

/// The other ranks are in notify_call().
void Join::stand_in() {
  PlacedCall silent;
  silent.fill(-std::numeric_limits<double>::infinity());
  const auto message = agree_on(joinables_.front().get().join_process_group(), silent);
  JoinCall call;
  std::copy(message.begin() + 1, message.end(), call.begin());
  hooks_[static_cast<std::size_t>(message[0])]->call_hook(call);
}

/// Its sum is below zero: a rank without inputs sees by that what comes.
int Join::notify_call(const Joinable& joinable, const JoinCall& call) {
  const auto& group = joinable.join_process_group();
  if (!joinable.in_join_ || !group.native()) return group.world_size();
  const int active = -sum_over_ranks(group, -1);
  check_early_termination(joinable);
  PlacedCall message{static_cast<double>(joinable.place_)};
  std::copy(call.begin(), call.end(), message.begin() + 1);
  agree_on(group, message);
  return active;
}

void Join::check_early_termination(const Joinable& joinable) {
  const auto& group = joinable.join_process_group();
  if (!joinable.throws_ || sum_over_ranks(group, 0) == 0) return;
  throw Exception("another rank has no inputs left while rank " + std::to_string(group.rank()) +
                  " has, and throw_on_early_termination is set");
}

void Join::notify_join_context(const Joinable& joinable) { count_active_ranks(joinable); }

c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable) {
  const auto& group = joinable.join_process_group();
  if (!joinable.in_join_ || !joinable.is_first_ || !group.native()) return nullptr;
  std::vector<at::Tensor> ones{at::ones({1}, group.device())};
  auto work = communicating("all_reduce of join", [&] { return group.native()->allreduce(ones); });
  Join::check_early_termination(joinable);
  return work;
}

}  // namespace taas
