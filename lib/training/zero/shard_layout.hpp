#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taas {

/// Where a parameter lies in a bucket, in elements.
struct ParameterPlace {
  std::size_t parameter = 0;
  std::int64_t offset = 0;
  std::int64_t numel = 0;
};

/// Parameters of one type and device, one after the other in one piece of memory.
struct BucketLayout {
  std::vector<ParameterPlace> places;
  std::int64_t numel = 0;  ///< with the padding: a multiple of the number of ranks
};

/// The elements begin…end-1 of a parameter, in the order of its memory.
struct ParameterPart {
  std::size_t parameter = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t offset = 0;  ///< of `begin` in the bucket
};

/// Buckets of about `bucket_bytes`, from the last parameter to the first, as backward comes to them. Each parameter and
/// each rank's slice begins at a multiple of 64 elements: vectorised kernels then have the same lanes as on the
/// whole parameter.
std::vector<BucketLayout> lay_out(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes, int world_size);

/// What of the bucket's parameters is in the slice of `rank`.
std::vector<ParameterPart> parts_of(const BucketLayout& bucket, int rank, int world_size);

/// The part of `memory` (flat) at `offset` in the shape of `like`, in the order of its memory where it is dense.
at::Tensor view_like(const at::Tensor& memory, std::int64_t offset, const at::Tensor& like);
/// `tensor` as a vector, in the order of the memory of `like`: a view where it can be.
at::Tensor flat_like(const at::Tensor& tensor, const at::Tensor& like);

}  // namespace taas
