#include "training/hooks/comm_hook_adapter.hpp"

#include <ATen/ATen.h>

#include "taas/error.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

std::string form_of(c10::IntArrayRef shape, const at::TensorOptions& options) {
  return describe_shape(shape) + ' ' + c10::toString(c10::typeMetaToScalarType(options.dtype())) + " on " +
         options.device().str() + (options.layout() == c10::kStrided ? "" : ", sparse");
}

/// The works of c10d hold a list of one tensor.
bool is_tensor_of_work(const c10::IValue& result) { return result.isTensorList() && result.toTensorList().size() == 1; }

/// The reducer copies floating point numbers of any size into the gradients: a hook may give 16 bits.
bool is_converted(c10::ScalarType given, const at::TensorOptions& wanted) {
  const auto type = c10::typeMetaToScalarType(wanted.dtype());
  return given == type || (c10::isFloatingType(given) && c10::isFloatingType(type));
}

/// For what is no tensor.
std::string kind_of_result(const c10::IValue& result) {
  if (result.isNone()) return "nothing";
  if (result.isList()) return "a list of " + std::to_string(result.toListRef().size()) + " values";
  return "a value of type " + result.tagKind();
}

}  // namespace

GradientFuture CommHookAdapter::runHook(c10d::GradBucket& bucket) {
  const auto& buffer = bucket.getBuffer();
  running_.push_back({bucket.getIndex(), buffer.sizes().vec(), buffer.options()});
  GradBucket handle(std::make_shared<c10d::GradBucket>(bucket));
  auto future = hook_->run(handle);
  if (!future) refuse(running_.back(), "a future that is null");
  return future;
}

/// The reducer takes the result's storage from its beginning on, whatever view of it the tensor is.
at::Tensor CommHookAdapter::parseHookResult(const c10::IValue& result) {
  const auto bucket = std::move(running_.front());
  running_.pop_front();
  if (!result.isTensor() && !is_tensor_of_work(result)) refuse(bucket, kind_of_result(result));
  const auto tensor = result.isTensor() ? result.toTensor() : result.toTensorVector().front();
  if (!tensor.defined()) refuse(bucket, "an undefined tensor");
  const auto& wanted = bucket.options;
  if (tensor.sizes() != c10::IntArrayRef(bucket.shape) || !is_converted(tensor.scalar_type(), wanted) ||
      tensor.device() != wanted.device() || tensor.layout() != wanted.layout()) {
    refuse(bucket, form_of(tensor.sizes(), tensor.options()));
  }
  if (tensor.layout() != c10::kStrided) return tensor;
  const bool is_whole = tensor.is_contiguous() && tensor.storage_offset() == 0;
  return is_whole ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

void CommHookAdapter::refuse(const RunningBucket& bucket, const std::string& given) const {
  throw InvalidArgument("the communication hook '" + hook_->name() + "' gave " + given + " for bucket " +
                        std::to_string(bucket.index) + ", whose gradients are " +
                        form_of(bucket.shape, bucket.options) + ": give a tensor like bucket.buffer()");
}

}  // namespace taas
