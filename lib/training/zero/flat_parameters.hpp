#pragma once

#include <cstddef>
#include <vector>

#include "taas/collectives.hpp"
#include "training/zero/shard_layout.hpp"

namespace taas {

/// This rank's part of a parameter.
struct Shard {
  ParameterPart part;
  at::Tensor tensor;  ///< a vector: a view of the bucket
};

/// Parameters as views of flat buckets, of each of which a rank owns an even slice.
class FlatParameters {
 public:
  /// A collective: all ranks get the values of rank 0.
  FlatParameters(const ProcessGroup& group, std::vector<at::Tensor> parameters, std::int64_t bucket_bytes);

  std::size_t size() const { return layouts_.size(); }
  const BucketLayout& layout(std::size_t bucket) const { return layouts_[bucket]; }
  const std::vector<BucketLayout>& layouts() const { return layouts_; }
  const std::vector<Shard>& shards(std::size_t bucket) const { return shards_[bucket]; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  /// The ranks' slices become the bucket of all.
  Work gather(std::size_t bucket);
  /// Until open(): whoever reads or writes a parameter of this bucket gets an exception that says so. Shards are as
  /// they were.
  void close(std::size_t bucket);
  void open(std::size_t bucket);

 private:
  void make_bucket(const BucketLayout& layout);
  void point_parameters(std::size_t bucket, const at::Tensor& memory);

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  std::vector<BucketLayout> layouts_;
  std::vector<at::Tensor> memory_;
  std::vector<at::Tensor> closed_;  ///< in its place while a bucket is closed, else undefined
  std::vector<std::vector<Shard>> shards_;
};

}  // namespace taas
