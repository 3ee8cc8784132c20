#pragma once

#include <ATen/ATen.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taas/error.hpp"
#include "taas/zero.hpp"
#include "training/zero/flat_parameters.hpp"
#include "training/zero/gradient_buckets.hpp"
#include "training/zero/trained_parameters.hpp"
#include "training/zero/zero_state.hpp"

namespace taas {

/// Makes the optimizer of one bucket's shares.
using MakePart = std::function<std::unique_ptr<torch::optim::Optimizer>(const ZeroOptimizer::Groups&)>;

/// The flat buckets of a ZeroOptimizer, this rank's shares of them, and an optimizer for each.
class ZeroOptimizer::Impl {
 public:
  Impl(const Groups& groups, const ProcessGroup& process_group, MakePart make, const ZeroOptions& options)
      : group(process_group),
        settings(options),
        make_(std::move(make)),
        trained_(trained_of(groups, options.order)),
        map(map_of(groups, trained_)),
        flat(group, checked(group, trained_tensors(trained_), options), flat_bytes(options)),
        user_groups_(groups) {
    if (options.overlap_gather) note_buckets();
    if (options.stage == 2) reduce_gradients();
  }

  /// What the optimizer shows as its own: parameters, or with stage 2 shards.
  Groups shown_groups() const {
    if (settings.stage == 1) return user_groups_;
    Groups shown;
    for (std::size_t g = 0; g < user_groups_.size(); ++g) {
      std::vector<at::Tensor> tensors;
      for (std::size_t b = 0; b < flat.size(); ++b) {
        for (const auto& shard : shards_of(b, g)) tensors.push_back(shard.tensor);
      }
      shown.push_back(with_options_of(g, std::move(tensors)));
    }
    return shown;
  }

  void make_bucket_optimizers() {
    for (std::size_t b = 0; b < flat.size(); ++b) {
      BucketOptimizer bucket;
      Groups groups;
      for (std::size_t g = 0; g < user_groups_.size(); ++g) {
        auto shards = shards_of(b, g);
        std::vector<at::Tensor> tensors;
        for (const auto& shard : shards) tensors.push_back(shard.tensor);
        groups.push_back(with_options_of(g, std::move(tensors)));
        bucket.shards.insert(bucket.shards.end(), shards.begin(), shards.end());
      }
      bucket.optimizer = make_(groups);
      buckets.push_back(std::move(bucket));
    }
    gathers_.resize(buckets.size());
  }

  /// The buckets that forward begins with come first. The gathers of the step before are through.
  void step(const Groups& shown, bool outlasted_by_gathers) {
    take_options(shown);
    for (std::size_t b = buckets.size(); b-- > 0;) {
      if (settings.stage == 1) link_gradients(b);
      buckets[b].optimizer->step();
      gathers_[b] = flat.gather(b);
      if (outlasted_by_gathers) flat.close(b);
      if (settings.stage == 1) clear_shards(b);
    }
    if (!outlasted_by_gathers) wait();
  }

  /// For the gathers of a step before.
  void wait() {
    for (std::size_t b = gathers_.size(); b-- > 0;) wait(b);
  }
  void wait(std::size_t b) {
    if (!gathers_[b]) return;
    gathers_[b]->wait();
    flat.open(b);
    gathers_[b].reset();
  }
  void wait_for(const std::vector<at::Tensor>& parameters) {
    for (const auto& parameter : parameters) {
      const auto found = bucket_of_.find(parameter.unsafeGetTensorImpl());
      if (found != bucket_of_.end()) wait(found->second);
    }
  }

  void take_options(const Groups& shown) {
    for (auto& bucket : buckets) {
      for (std::size_t g = 0; g < shown.size(); ++g) {
        bucket.optimizer->param_groups()[g].set_options(shown[g].options().clone());
      }
    }
  }

  /// Those of a step before are no longer wanted, also where nobody has cleared them yet.
  void shadow_backward() {
    for (std::size_t b = 0; stepped && b < flat.size(); ++b) clear_shards(b);
    stepped = false;
    reducer->shadow_backward();
  }

  void clear_shards(std::size_t b) {
    for (const auto& shard : flat.shards(b)) shard.tensor.mutable_grad().reset();
  }

  /// Stage 2: backward takes a gradient out of its parameter when it is averaged.
  void check_gradients_are_averaged() const {
    if (settings.stage == 1) return;
    for (std::size_t i = 0; i < flat.parameters().size(); ++i) {
      if (!flat.parameters()[i].grad().defined()) continue;
      throw Exception("parameter " + std::to_string(trained_[i].index) +
                      " of the optimizer has a gradient that is not averaged over the ranks: run the last backward "
                      "before step() outside of no_sync(), or call zero_grad() to drop what was accumulated");
    }
  }

  std::vector<at::Tensor> gradients() {
    std::vector<at::Tensor> found;
    const auto add = [&](const at::Tensor& tensor) {
      if (tensor.grad().defined()) found.push_back(tensor.grad());
    };
    if (settings.stage == 1) {
      for (const auto& parameter : flat.parameters()) add(parameter);
      return found;
    }
    for (std::size_t b = 0; b < flat.size(); ++b) {
      for (const auto& shard : flat.shards(b)) add(shard.tensor);
    }
    return found;
  }

  ProcessGroup group;
  ZeroOptions settings;
  bool stepped = false;  ///< since the last backward
  int exceptions_at_start = std::uncaught_exceptions();
  bool divide_by_initial_world_size = true;

 private:
  /// For wait_for().
  void note_buckets() {
    for (std::size_t b = 0; b < flat.size(); ++b) {
      for (const auto& place : flat.layout(b).places) {
        bucket_of_[flat.parameters()[place.parameter].unsafeGetTensorImpl()] = b;
      }
    }
  }

  MakePart make_;
  std::vector<TrainedParameter> trained_;

 public:
  StateMap map;
  FlatParameters flat;
  std::vector<BucketOptimizer> buckets;
  std::unique_ptr<GradientBuckets> reducer;

 private:
  static constexpr double kFlatMiB = 25;
  static constexpr double kMiBInBytes = 1024.0 * 1024.0;

  static std::int64_t flat_bytes(const ZeroOptions& options) {
    return static_cast<std::int64_t>(options.bucket_cap_mb.value_or(kFlatMiB) * kMiBInBytes);
  }

  void reduce_gradients() {
    by_parameter_.resize(flat.parameters().size());
    for (std::size_t b = 0; b < flat.size(); ++b) {
      for (const auto& shard : flat.shards(b)) by_parameter_[shard.part.parameter] = &shard;
    }
    GradientBucketOptions options{.bucket_cap_mb = settings.bucket_cap_mb,
                                  .find_unused_parameters = settings.find_unused_parameters,
                                  .reduce_scatter = settings.reduce_scatter.value_or(group.backend() == "nccl")};
    reducer = std::make_unique<GradientBuckets>(group, flat.parameters(), flat.layouts(), options,
                                                [this](std::size_t parameter, std::int64_t begin,
                                                       const at::Tensor& average) { take(parameter, begin, average); });
  }

  void take(std::size_t parameter, std::int64_t begin, const at::Tensor& average) {
    const auto* shard = by_parameter_[parameter];
    if (!shard) return;
    const auto own = average.slice(0, shard->part.begin - begin, shard->part.end - begin);
    auto& gradient = shard->tensor.mutable_grad();
    if (gradient.defined()) {
      gradient.add_(own);
    } else {
      gradient = own.clone();
    }
  }

  void link_gradients(std::size_t b) {
    for (const auto& shard : flat.shards(b)) {
      const auto& parameter = flat.parameters()[shard.part.parameter];
      if (!parameter.grad().defined()) continue;
      if (parameter.grad().is_sparse()) throw InvalidArgument("taas::ZeroOptimizer takes dense gradients only");
      shard.tensor.mutable_grad() = flat_like(parameter.grad(), parameter).slice(0, shard.part.begin, shard.part.end);
    }
  }

  std::vector<Shard> shards_of(std::size_t b, std::size_t g) const {
    std::vector<Shard> shards;
    for (const auto& shard : flat.shards(b)) {
      if (trained_[shard.part.parameter].group == g) shards.push_back(shard);
    }
    return shards;
  }

  torch::optim::OptimizerParamGroup with_options_of(std::size_t g, std::vector<at::Tensor> tensors) const {
    if (!user_groups_[g].has_options()) return torch::optim::OptimizerParamGroup(std::move(tensors));
    return {std::move(tensors), user_groups_[g].options().clone()};
  }

  Groups user_groups_;
  std::vector<const Shard*> by_parameter_;
  std::unordered_map<const at::TensorImpl*, std::size_t> bucket_of_;  ///< empty without overlap_gather
  std::vector<std::optional<Work>> gathers_;                          ///< that are under way, by bucket
};

}  // namespace taas
