#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "taas/process_group.hpp"

namespace c10d {
class Work;
}

namespace taas {

/// The options of torch.distributed.algorithms.Join and of DistributedDataParallel.join, with their names and defaults.
struct JoinOptions {
  /// Gradients are divided by the world size, so that each input weighs the same; else by the number of ranks that
  /// still have inputs.
  bool divide_by_initial_world_size = true;
  /// Without it the scope does nothing: for inputs that are known to be even.
  bool enable = true;
  /// All ranks throw (Exception) as soon as one has no inputs left, instead of going on without it.
  bool throw_on_early_termination = false;
};

/// What a rank without inputs does in the place of an iteration.
class JoinHook {
 public:
  virtual ~JoinHook() = default;
  /// Once for each iteration of the other ranks: takes part in each collective that they start in it.
  virtual void main_hook() {}
  /// Once, when no rank has inputs left. `is_last_joiner`: this one was among the last that had.
  virtual void post_hook(bool is_last_joiner) { static_cast<void>(is_last_joiner); }
};

class Join;

/// What has collectives of its own in each iteration: a DistributedDataParallel, an optimizer that is sharded. It calls
/// Join::notify_join_context before the first of them.
class Joinable {
 public:
  Joinable() = default;
  virtual ~Joinable() = default;
  Joinable(const Joinable&) = delete;
  Joinable& operator=(const Joinable&) = delete;

  virtual std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) = 0;
  virtual const ProcessGroup& join_process_group() const = 0;
  /// The scope has ended, also when an exception has ended it: no collective may be started.
  virtual void leave_join() {}
  /// Whether a scope is open in which inputs may be uneven.
  bool in_join() const { return in_join_; }

 private:
  friend class Join;
  friend c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable);
  bool in_join_ = false;
  bool is_first_ = false;  ///< the one that tells the other ranks for all of the scope
  bool throws_ = false;
};

/// A scope in which ranks may have different numbers of iterations. A rank that is through with its own ones stands in
/// for the collectives of the others until all are through; then all get the model of the rank that was last.
///
///     taas::Join join({model});
///     for (auto& batch : batches) {
///       ...
///     }
///     join.finish();
///
/// or, in one call, taas::join({model}, [&] { for (auto& batch : batches) ... });
///
/// Every rank opens and finishes the scope. Where an exception ends it, nothing is communicated: the other ranks find
/// this one gone when its group ends.
///
/// Throws InvalidArgument for no joinable, or for joinables of different groups.
class Join {
 public:
  using Joinables = std::vector<std::reference_wrapper<Joinable>>;

  explicit Join(Joinables joinables, const JoinOptions& options = {});
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// After the last iteration of this rank. Returns when all ranks are here. Throws CommunicationError when one is
  /// gone, Exception when throw_on_early_termination is set and others have inputs left.
  void finish();

  /// What a joinable calls before the first collective of an iteration: says that this rank still has inputs. One
  /// small collective for the first joinable of a scope, nothing for the others and outside of a scope. Throws
  /// Exception when throw_on_early_termination is set and a rank has no inputs left.
  static void notify_join_context(const Joinable& joinable);

 private:
  void shadow();
  void leave();

  Joinables joinables_;
  JoinOptions options_;
  std::vector<std::unique_ptr<JoinHook>> hooks_;
  int exceptions_at_start_;
  bool open_ = true;
};

/// Runs `iterations` in such a scope.
template <class Iterations>
void join(Join::Joinables joinables, Iterations&& iterations, const JoinOptions& options = {}) {
  Join scope(std::move(joinables), options);
  std::forward<Iterations>(iterations)();
  scope.finish();
}

}  // namespace taas
