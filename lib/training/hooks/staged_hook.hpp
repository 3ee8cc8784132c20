#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "taas/comm_hooks.hpp"

namespace taas {

/// A hook that has to communicate several times for each bucket, each time with what came of the time before.
///
/// All is started by the thread of backward, in an order that is the same on all ranks: when a bucket comes, the ones
/// before it go on by a stage each, and the last one drives all to their end. Were the later stages started where the
/// earlier ones end, on threads of the backend, ranks could start the collectives of two buckets in different orders.
/// So a bucket's future may be complete only when the last bucket has come.
class StagedHook : public CommHook {
 public:
  GradientFuture run(GradBucket& bucket) override;

 protected:
  /// Waits for what the stage before it has started. The last one returns the result, others an undefined tensor.
  using Stage = std::function<at::Tensor()>;
  virtual std::vector<Stage> stages(const GradBucket& bucket) = 0;

 private:
  struct Task {
    GradientFuture result;
    std::vector<Stage> stages;
    std::size_t next = 0;
  };
  static void advance(Task& task);
  void advance_before(std::size_t end);

  std::deque<Task> tasks_;  ///< of this backward, those that are not through
};

}  // namespace taas
