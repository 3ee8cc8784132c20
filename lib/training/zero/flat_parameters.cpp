#include "training/zero/flat_parameters.hpp"

#include <ATen/ATen.h>

#include <string>
#include <utility>

namespace taas {
namespace {

constexpr const char* kClosed =
    "a parameter is used while its new values are still being gathered: call wait() of the taas::ZeroOptimizer, or "
    "wait_for() with the module, between step() and forward";

/// As `memory`, without any: torch throws where its data are asked for.
at::Tensor without_memory(const at::Tensor& memory) {
  c10::Storage nothing(c10::Storage::use_byte_size_t{}, memory.nbytes(), at::DataPtr(nullptr, memory.device()),
                       /*allocator=*/nullptr, /*resizable=*/false);
  nothing.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(kClosed));
  auto tensor = at::detail::make_tensor<at::TensorImpl>(std::move(nothing), memory.key_set(), memory.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(memory.sizes());
  return tensor;
}

}  // namespace

FlatParameters::FlatParameters(const ProcessGroup& group, std::vector<at::Tensor> parameters, std::int64_t bucket_bytes)
    : group_(group),
      parameters_(std::move(parameters)),
      layouts_(lay_out(parameters_, bucket_bytes, group.world_size())) {
  at::NoGradGuard no_grad;
  for (const auto& layout : layouts_) make_bucket(layout);
  closed_.resize(layouts_.size());
}

void FlatParameters::make_bucket(const BucketLayout& layout) {
  auto memory = at::zeros({layout.numel}, parameters_[layout.places.front().parameter].detach().options());
  for (const auto& place : layout.places) {
    auto& parameter = parameters_[place.parameter];
    auto view = view_like(memory, place.offset, parameter);
    view.copy_(parameter);
    parameter.set_data(view);
  }
  broadcast(group_, memory);
  auto& shards = shards_.emplace_back();
  for (const auto& part : parts_of(layout, group_.rank(), group_.world_size())) {
    shards.push_back({part, memory.narrow(0, part.offset, part.end - part.begin).detach()});
  }
  memory_.push_back(std::move(memory));
}

void FlatParameters::point_parameters(std::size_t bucket, const at::Tensor& memory) {
  for (const auto& place : layouts_[bucket].places) {
    auto& parameter = parameters_[place.parameter];
    parameter.set_data(view_like(memory, place.offset, parameter));
  }
}

void FlatParameters::close(std::size_t bucket) {
  at::NoGradGuard no_grad;
  closed_[bucket] = without_memory(memory_[bucket]);
  point_parameters(bucket, closed_[bucket]);
}

void FlatParameters::open(std::size_t bucket) {
  if (!closed_[bucket].defined()) return;
  at::NoGradGuard no_grad;
  point_parameters(bucket, memory_[bucket]);
  closed_[bucket].reset();
}

Work FlatParameters::gather(std::size_t bucket) {
  auto rows = memory_[bucket].view({group_.world_size(), -1});
  auto own = rows[group_.rank()];
  if (own.is_cpu()) own = own.clone();  // gloo copies its input into the output, where this one would be already
  return all_gather_async(group_, rows, own);
}

}  // namespace taas
