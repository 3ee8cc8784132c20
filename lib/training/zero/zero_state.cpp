#include "training/zero/zero_state.hpp"

#include <ATen/ATen.h>

#include <array>
#include <string>
#include <utility>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

using Dict = c10::impl::GenericDict;
using List = c10::impl::GenericList;

/// What SGD, Adam and AdamW keep of each element.
constexpr std::array<const char*, 4> kMoments{"momentum_buffer", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
constexpr std::int64_t kExists = kMoments.size(), kStep = kExists + 1, kFields = kStep + 1;

/// Of each parameter in a bucket: which moments it has, whether it has a state, and its steps. The same on all ranks.
at::Tensor agreed_fields(const ProcessGroup& group, const BucketLayout& layout, const std::vector<Shard>& shards,
                         const Dict& states) {
  auto fields = at::zeros({static_cast<std::int64_t>(layout.places.size()), kFields}, at::kLong);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto key = c10::IValue(static_cast<std::int64_t>(i));
    if (!states.contains(key)) continue;
    std::int64_t row = 0;
    while (layout.places[static_cast<std::size_t>(row)].parameter != shards[i].part.parameter) ++row;
    const auto state = states.at(key).toGenericDict();
    fields[row][kExists] = 1;
    for (std::size_t m = 0; m < kMoments.size(); ++m) {
      const bool has = state.contains(kMoments[m]) && state.at(kMoments[m]).isTensor();
      if (has) fields[row][static_cast<std::int64_t>(m)] = 1;
    }
    if (state.contains("step")) fields[row][kStep] = state.at("step").toScalar().toLong() + 1;
  }
  fields = fields.to(group.device());
  all_reduce(group, fields, ReduceOp::kMax);
  return fields.cpu();
}

/// The bucket's `moment` on the root; on others undefined.
at::Tensor gather_moment(const ProcessGroup& group, const BucketLayout& layout, const std::vector<Shard>& shards,
                         const Dict& states, const char* moment, const at::TensorOptions& options, int root) {
  const auto slice = layout.numel / group.world_size();
  auto own = at::zeros({slice}, options);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto key = c10::IValue(static_cast<std::int64_t>(i));
    if (!states.contains(key)) continue;
    const auto state = states.at(key).toGenericDict();
    if (!state.contains(moment) || !state.at(moment).isTensor()) continue;
    const auto& part = shards[i].part;
    own.narrow(0, part.offset - slice * group.rank(), part.end - part.begin).copy_(state.at(moment).toTensor());
  }
  at::Tensor all;
  if (group.rank() == root) all = at::empty({group.world_size(), slice}, options);
  gather(group, all, own, root);
  return all.defined() ? all.view(-1).cpu() : all;
}

void add_moment(const FlatParameters& parameters, const BucketLayout& layout, const at::Tensor& fields,
                std::int64_t moment, const at::Tensor& all, std::vector<Dict>& states) {
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    if (fields[static_cast<std::int64_t>(i)][moment].item<std::int64_t>() == 0) continue;
    const auto& place = layout.places[i];
    auto view = view_like(all, place.offset, parameters.parameters()[place.parameter]);
    states[i].insert(kMoments[static_cast<std::size_t>(moment)], view.clone(at::MemoryFormat::Contiguous));
  }
}

/// The states of the bucket's parameters, on the root.
std::vector<Dict> gather_bucket(const ProcessGroup& group, const FlatParameters& parameters, const BucketLayout& layout,
                                const BucketOptimizer& bucket, const at::Tensor& fields, const Dict& own, int root) {
  std::vector<Dict> states;
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    states.push_back(plain_dict());
    const auto step = fields[static_cast<std::int64_t>(i)][kStep].item<std::int64_t>();
    if (step > 0) states.back().insert("step", step - 1);
  }
  const auto options = parameters.parameters()[layout.places.front().parameter].detach().options();
  const auto any = fields.amax(0);
  for (std::size_t m = 0; m < kMoments.size(); ++m) {
    const auto moment = static_cast<std::int64_t>(m);
    if (any[moment].item<std::int64_t>() == 0) continue;
    const auto all = gather_moment(group, layout, bucket.shards, own, kMoments[m], options, root);
    if (all.defined()) add_moment(parameters, layout, fields, moment, all, states);
  }
  return states;
}

List groups_with_indices(const List& groups, const StateMap& map) {
  auto all = plain_list();
  for (std::size_t g = 0; g < map.groups.size(); ++g) {
    auto indices = plain_list();
    for (auto index : map.groups[g]) indices.push_back(static_cast<std::int64_t>(index));
    auto group = groups.get(g).toGenericDict().copy();
    group.insert_or_assign("params", indices);
    all.push_back(group);
  }
  return all;
}

/// A group's options, with the numbers of a bucket's shards in place of the parameters'.
List groups_of_bucket(const List& groups, const torch::optim::Optimizer& optimizer) {
  auto all = plain_list();
  std::int64_t next = 0;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    auto indices = plain_list();
    for (std::size_t i = 0; i < optimizer.param_groups()[g].params().size(); ++i) indices.push_back(next++);
    auto group = groups.get(g).toGenericDict().copy();
    group.insert_or_assign("params", indices);
    all.push_back(group);
  }
  return all;
}

/// What of a parameter's state belongs to a shard.
Dict cut(const Dict& state, const ParameterPart& part, const at::Tensor& parameter, std::size_t index) {
  auto own = plain_dict();
  for (const auto& field : state) {
    const auto& name = field.key().toStringRef();
    if (name == "step" || !field.value().isTensor()) {
      own.insert(name, field.value());
      continue;
    }
    const auto& tensor = field.value().toTensor();
    if (tensor.sizes() != parameter.sizes()) {
      throw CheckpointError("the optimizer state of parameter " + std::to_string(index) + " has another shape (" +
                            name + ") than the parameter");
    }
    own.insert(name, flat_like(tensor, parameter).slice(0, part.begin, part.end).clone());
  }
  return own;
}

}  // namespace

c10::IValue gather_state(const ProcessGroup& group, const FlatParameters& parameters,
                         const std::vector<BucketOptimizer>& buckets, const StateMap& map, int root) {
  std::vector<std::optional<Dict>> by_index;
  std::optional<List> groups;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto& layout = parameters.layout(b);
    const auto own = optimizer_state(*buckets[b].optimizer).toGenericDict();
    const auto states = own.at("state").toGenericDict();
    groups = own.at("param_groups").toList();
    const auto fields = agreed_fields(group, layout, buckets[b].shards, states);
    auto whole = gather_bucket(group, parameters, layout, buckets[b], fields, states, root);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto index = map.index_of[layout.places[i].parameter];
      if (by_index.size() <= index) by_index.resize(index + 1);
      if (fields[static_cast<std::int64_t>(i)][kExists].item<std::int64_t>() != 0) by_index[index] = whole[i];
    }
  }
  if (group.rank() != root) return {};
  auto states = plain_dict();
  for (std::size_t i = 0; i < by_index.size(); ++i) {
    if (by_index[i]) states.insert(static_cast<std::int64_t>(i), *by_index[i]);
  }
  auto all = plain_dict();
  all.insert("state", states);
  all.insert("param_groups", groups_with_indices(*groups, map));
  return all;
}

void check_groups(const c10::impl::GenericList& groups, const StateMap& map) {
  if (groups.size() != map.groups.size()) {
    throw CheckpointError("the checkpoint has " + std::to_string(groups.size()) +
                          " parameter groups but the optimizer " + std::to_string(map.groups.size()));
  }
  for (std::size_t g = 0; g < map.groups.size(); ++g) {
    const auto saved = groups.get(g).toGenericDict().at("params").toListRef().size();
    if (saved == map.groups[g].size()) continue;
    throw CheckpointError("parameter group " + std::to_string(g) + " has " + std::to_string(saved) +
                          " parameters in the checkpoint but " + std::to_string(map.groups[g].size()) +
                          " in the optimizer");
  }
}

c10::IValue groups_of(const std::vector<BucketOptimizer>& buckets, const StateMap& map) {
  const auto own = optimizer_state(*buckets.front().optimizer, StateTensors::kShared).toGenericDict();
  return groups_with_indices(own.at("param_groups").toList(), map);
}

std::vector<c10::IValue> states_of_buckets(const std::vector<BucketOptimizer>& buckets, const StateMap& map,
                                           const c10::impl::GenericList& groups, const StateOfPart& state_of) {
  check_groups(groups, map);
  std::vector<c10::IValue> own;
  for (const auto& bucket : buckets) {
    auto states = plain_dict();
    for (std::size_t i = 0; i < bucket.shards.size(); ++i) {
      const auto& part = bucket.shards[i].part;
      if (auto state = state_of(part, map.index_of[part.parameter]))
        states.insert(static_cast<std::int64_t>(i), *state);
    }
    auto one = plain_dict();
    one.insert("state", states);
    one.insert("param_groups", groups_of_bucket(groups, *bucket.optimizer));
    own.emplace_back(one);
  }
  return own;
}

void take_states(std::vector<BucketOptimizer>& buckets, std::vector<c10::IValue> states) {
  for (std::size_t b = 0; b < buckets.size(); ++b) load_optimizer_state(*buckets[b].optimizer, std::move(states[b]));
}

void scatter_state(const FlatParameters& parameters, std::vector<BucketOptimizer>& buckets, const StateMap& map,
                   const c10::IValue& state) {
  const auto all = state.toGenericDict();
  const auto saved = all.at("state").toGenericDict();
  const auto state_of = [&](const ParameterPart& part, std::size_t index) -> std::optional<Dict> {
    const auto key = c10::IValue(static_cast<std::int64_t>(index));
    if (!saved.contains(key)) return std::nullopt;
    return cut(saved.at(key).toGenericDict(), part, parameters.parameters()[part.parameter], index);
  };
  take_states(buckets, states_of_buckets(buckets, map, all.at("param_groups").toList(), state_of));
}

}  // namespace taas
