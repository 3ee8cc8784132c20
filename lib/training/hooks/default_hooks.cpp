#include <ATen/ATen.h>

#include "training/hooks/futures.hpp"

namespace taas {
namespace {

std::shared_ptr<CommHook> compress_hook(std::string name, ProcessGroup group, at::ScalarType type) {
  return function_hook(std::move(name), [group = std::move(group), type](GradBucket& bucket) {
    const auto buffer = bucket.buffer();
    return then(all_reduce_average(group, buffer.to(type)),
                [buffer](const at::Tensor& compressed) { return buffer.copy_(compressed); });
  });
}

/// The result stays of 16 bits: the reducer makes it that of the gradients.
std::shared_ptr<CommHook> compress_wrapper(std::string name, std::shared_ptr<CommHook> hook, at::ScalarType type) {
  return function_hook(std::move(name), [hook = std::move(hook), type](GradBucket& bucket) {
    const auto compressed = bucket.buffer().to(type);
    bucket.set_buffer(compressed);
    return then(hook->run(bucket), [compressed](const at::Tensor& reduced) { return compressed.copy_(reduced); });
  });
}

}  // namespace

std::shared_ptr<CommHook> allreduce_hook(ProcessGroup group) {
  return function_hook("allreduce_hook", [group = std::move(group)](GradBucket& bucket) {
    return all_reduce_average(group, bucket.buffer());
  });
}

std::shared_ptr<CommHook> fp16_compress_hook(ProcessGroup group) {
  return compress_hook("fp16_compress_hook", std::move(group), at::kHalf);
}
std::shared_ptr<CommHook> bf16_compress_hook(ProcessGroup group) {
  return compress_hook("bf16_compress_hook", std::move(group), at::kBFloat16);
}
std::shared_ptr<CommHook> fp16_compress_wrapper(std::shared_ptr<CommHook> hook) {
  return compress_wrapper("fp16_compress_wrapper_hook", std::move(hook), at::kHalf);
}
std::shared_ptr<CommHook> bf16_compress_wrapper(std::shared_ptr<CommHook> hook) {
  return compress_wrapper("bf16_compress_wrapper_hook", std::move(hook), at::kBFloat16);
}

std::shared_ptr<CommHook> noop_hook() {
  return function_hook("noop_hook", [](GradBucket& bucket) { return completed(bucket.buffer()); });
}

}  // namespace taas
