#include "training/zero/shard_layout.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace taas {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t rounded_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

}  // namespace

std::vector<BucketLayout> lay_out(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes,
                                  int world_size) {
  std::vector<BucketLayout> buckets;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto& parameter = parameters[i];
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const BucketLayout& open) {
      return same_kind(parameters[open.places.front().parameter], parameter) &&
             open.numel * parameter.element_size() < bucket_bytes;
    });
    if (bucket == buckets.end()) bucket = buckets.insert(buckets.end(), BucketLayout());
    bucket->places.push_back({i, bucket->numel, parameter.numel()});
    bucket->numel += rounded_up(parameter.numel(), kAlignment);
  }
  for (auto& bucket : buckets) bucket.numel = rounded_up(bucket.numel, kAlignment * world_size);
  return buckets;
}

std::vector<ParameterPart> parts_of(const BucketLayout& bucket, int rank, int world_size) {
  const auto slice = bucket.numel / world_size;
  const auto first = slice * rank;
  std::vector<ParameterPart> parts;
  for (const auto& place : bucket.places) {
    const auto begin = std::max<std::int64_t>(0, first - place.offset);
    const auto end = std::min(place.numel, first + slice - place.offset);
    if (begin < end) parts.push_back({place.parameter, begin, end, place.offset + begin});
  }
  return parts;
}

at::Tensor view_like(const at::Tensor& memory, std::int64_t offset, const at::Tensor& like) {
  if (!is_dense(like)) return memory.narrow(0, offset, like.numel()).view(like.sizes());
  return memory.as_strided(like.sizes(), like.strides(), memory.storage_offset() + offset);
}

at::Tensor flat_like(const at::Tensor& tensor, const at::Tensor& like) {
  if (!is_dense(like)) return tensor.reshape({-1});
  const bool fits = tensor.strides() == like.strides();
  auto dense = fits ? tensor : at::empty_strided(like.sizes(), like.strides(), tensor.options()).copy_(tensor);
  return dense.as_strided({dense.numel()}, {1}, dense.storage_offset());
}

}  // namespace taas
