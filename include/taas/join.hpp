#pragma once

#include <c10/util/intrusive_ptr.h>

#include <array>
#include <cstddef>
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

/// What a joinable tells its hooks on the other ranks of a call: numbers that mean something to it alone.
using JoinCall = std::array<double, 3>;

/// What a rank without inputs does in the place of an iteration.
class JoinHook {
 public:
  virtual ~JoinHook() = default;
  /// Once for each iteration of the other ranks: takes part in each collective that they start in it.
  virtual void main_hook() {}
  /// Once for each Join::notify_call() of the other ranks for this hook's joinable, with what they gave.
  virtual void call_hook(const JoinCall& call) { static_cast<void>(call); }
  /// Asked for where a joinable needs_gradients(): main_hook() leaves the averaged gradients of the other ranks in the
  /// parameters. Returns whether this hook does.
  virtual bool keep_gradients() { return false; }
  /// Once, when no rank has inputs left. `is_last_joiner`: this one was among the last that had.
  virtual void post_hook(bool is_last_joiner) { static_cast<void>(is_last_joiner); }
};

class Join;

/// What has collectives of its own in each iteration: a DistributedDataParallel, an optimizer that is sharded. It calls
/// Join::notify_join_context before the first of them; or, where not each iteration has all of them,
/// Join::notify_call before each.
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
  /// Whether it works with the gradients of the other ranks after this one has no inputs left. Another joinable of the
  /// scope has to leave them in the parameters (JoinHook::keep_gradients).
  virtual bool needs_gradients() const { return false; }
  /// Whether a scope is open in which inputs may be uneven.
  bool in_join() const { return in_join_; }

 private:
  friend class Join;
  friend c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable);
  bool in_join_ = false;
  std::size_t place_ = 0;  ///< among those of the scope
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
/// Throws InvalidArgument for no joinable, for joinables of different groups, or when one needs gradients that none of
/// the others keeps.
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

  /// What a joinable calls before a collective that is not in each iteration, such as that of an optimizer's step: on
  /// ranks without inputs its hook gets `call`, which is the same on all ranks that have some. Two small collectives
  /// in a scope, nothing outside of one. Returns the number of ranks that have inputs. Throws as
  /// notify_join_context().
  static int notify_call(const Joinable& joinable, const JoinCall& call);

 private:
  friend c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable);
  static void check_early_termination(const Joinable& joinable);
  void find_gradients();
  void shadow();
  void stand_in();
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
