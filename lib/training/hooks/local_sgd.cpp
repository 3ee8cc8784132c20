#include <ATen/ATen.h>

#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/hooks/futures.hpp"

namespace taas {
namespace {

GradientFuture average_in_subgroup(PostLocalSGDState& state, const GradBucket& bucket) {
  if (!state.post_local_gradient_allreduce) return completed(bucket.buffer());
  return all_reduce_average(state.subgroup, bucket.buffer());
}

void count_iteration(PostLocalSGDState& state, const GradBucket& bucket) {
  if (!bucket.is_last() || ++state.iter != state.start_localSGD_iter) return;
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo,
             "local SGD begins after " + std::to_string(state.iter) + " iterations");
}

}  // namespace

std::shared_ptr<CommHook> post_localSGD_hook(std::shared_ptr<PostLocalSGDState> state) {
  if (state->start_localSGD_iter < 0) {
    throw InvalidArgument("start_localSGD_iter must not be negative, but is " +
                          std::to_string(state->start_localSGD_iter));
  }
  return function_hook("post_localSGD_hook", [state = std::move(state)](GradBucket& bucket) {
    if (state->iter >= state->start_localSGD_iter) return average_in_subgroup(*state, bucket);
    count_iteration(*state, bucket);
    return all_reduce_average(state->process_group, bucket.buffer());
  });
}

}  // namespace taas
