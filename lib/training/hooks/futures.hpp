#pragma once

#include <string>
#include <utility>

#include "taas/comm_hooks.hpp"

namespace taas {

/// A future of a tensor like `tensor`, for the caller to complete.
GradientFuture pending(const at::Tensor& tensor);

/// A hook that is a function of the bucket.
template <class Function>
class FunctionHook : public CommHook {
 public:
  FunctionHook(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  GradientFuture run(GradBucket& bucket) override { return function_(bucket); }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  Function function_;
};

template <class Function>
std::shared_ptr<CommHook> function_hook(std::string name, Function function) {
  return std::make_shared<FunctionHook<Function>>(std::move(name), std::move(function));
}

}  // namespace taas
