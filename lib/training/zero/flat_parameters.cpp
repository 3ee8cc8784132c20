#include "training/zero/flat_parameters.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace taas {
FlatParameters::FlatParameters(const ProcessGroup& group, std::vector<at::Tensor> parameters, std::int64_t bucket_bytes)
    : group_(group),
      parameters_(std::move(parameters)),
      layouts_(lay_out(parameters_, bucket_bytes, group.world_size())) {
  at::NoGradGuard no_grad;
  for (const auto& layout : layouts_) make_bucket(layout);
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

Work FlatParameters::gather(std::size_t bucket) {
  auto rows = memory_[bucket].view({group_.world_size(), -1});
  auto own = rows[group_.rank()];
  if (own.is_cpu()) own = own.clone();  // gloo copies its input into the output, where this one would be already
  return all_gather_async(group_, rows, own);
}

}  // namespace taas
