#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "taas/comm_hooks.hpp"

namespace taas {

/// A hook as the reducer wants it.
class CommHookAdapter : public c10d::CommHookInterface {
 public:
  explicit CommHookAdapter(std::shared_ptr<CommHook> hook) : hook_(std::move(hook)) {}

  /// The reducer's bucket ends with the call: the hook gets a copy, of the same tensors.
  GradientFuture runHook(c10d::GradBucket& bucket) override {
    GradBucket handle(std::make_shared<c10d::GradBucket>(bucket));
    return hook_->run(handle);
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  std::shared_ptr<CommHook> hook_;
};

}  // namespace taas
