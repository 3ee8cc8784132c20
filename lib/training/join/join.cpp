#include "taas/join.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <string>

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
  for (Joinable& joinable : joinables_) {
    joinable.in_join_ = options_.enable;
    joinable.throws_ = options_.throw_on_early_termination;
    joinable.is_first_ = &joinable == &joinables_.front().get();
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
  for (; sum_over_ranks(group, 0) > 0; ++iterations) {
    warn_of_skew(iterations, group.rank());
    if (options_.throw_on_early_termination) {
      sum_over_ranks(group, 1);
      throw Exception("rank " + std::to_string(group.rank()) +
                      " has no inputs left while others have, and throw_on_early_termination is set");
    }
    for (const auto& hook : hooks_) hook->main_hook();
  }
  const bool is_last_joiner = iterations == 0;
  for (const auto& hook : hooks_) hook->post_hook(is_last_joiner);
}

void Join::notify_join_context(const Joinable& joinable) { count_active_ranks(joinable); }

c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable) {
  const auto& group = joinable.join_process_group();
  if (!joinable.in_join_ || !joinable.is_first_ || !group.native()) return nullptr;
  std::vector<at::Tensor> ones{at::ones({1}, group.device())};
  auto work = communicating("all_reduce of join", [&] { return group.native()->allreduce(ones); });
  if (joinable.throws_ && sum_over_ranks(group, 0) > 0) {
    throw Exception("another rank has no inputs left while rank " + std::to_string(group.rank()) +
                    " has, and throw_on_early_termination is set");
  }
  return work;
}

}  // namespace taas
