#include "training/zero/shard_manifest.hpp"

#include <ATen/core/Tensor.h>

#include <map>
#include <utility>

#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/group/tensor_checks.hpp"
#include "training/zero/shard_values.hpp"

namespace taas {
namespace {

constexpr const char* kManifest = "taas shards";

using Numbers = std::vector<std::int64_t>;

c10::impl::GenericList list_of(const Numbers& numbers) {
  auto list = plain_list();
  for (const auto number : numbers) list.push_back(number);
  return list;
}

Numbers numbers_from(const c10::IValue& value) {
  Numbers numbers;
  for (const auto& number : value.toListRef()) numbers.push_back(number.toInt());
  return numbers;
}

/// The strides of flat_like(): the tensor's own where it is dense.
Numbers order_of_memory(const at::Tensor& tensor) {
  Numbers order(static_cast<std::size_t>(tensor.dim()));
  std::int64_t contiguous = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto dim = static_cast<std::int64_t>(i);
    const auto stride = tensor.is_non_overlapping_and_dense() ? tensor.stride(dim) : contiguous;
    order[i] = tensor.size(dim) == 1 ? 0 : stride;
    contiguous *= tensor.size(dim);
  }
  return order;
}

SavedParameter describe_saved(const at::Tensor& tensor, std::size_t index) {
  return {static_cast<std::int64_t>(index), c10::toString(tensor.scalar_type()), tensor.sizes().vec(),
          order_of_memory(tensor)};
}

void check_same_parameter(const SavedParameter& saved, const SavedParameter& own) {
  const auto which = "parameter " + std::to_string(own.index) + " is ";
  if (saved.type != own.type || saved.sizes != own.sizes) {
    throw CheckpointError(which + describe_shape(saved.sizes) + " " + saved.type + " in the shards but " +
                          describe_shape(own.sizes) + " " + own.type + " in the optimizer");
  }
  if (saved.order != own.order) {
    throw CheckpointError(which + "in another memory format in the shards: give the module the same, or load a " +
                          "consolidated_state()");
  }
}

c10::impl::GenericDict value_of(const SavedParameter& parameter) {
  auto value = plain_dict();
  value.insert("index", parameter.index);
  value.insert("type", parameter.type);
  value.insert("sizes", list_of(parameter.sizes));
  value.insert("order", list_of(parameter.order));
  return value;
}

c10::impl::GenericDict value_of(const ShardEntry& shard) {
  auto pieces = plain_list();
  for (const auto& piece : shard.pieces) pieces.push_back(list_of({piece.parameter, piece.begin, piece.end}));
  auto value = plain_dict();
  value.insert("bytes", shard.bytes);
  value.insert("pieces", pieces);
  return value;
}

SavedParameter saved_parameter_from(const c10::IValue& value) {
  const auto dict = value.toGenericDict();
  return {dict.at("index").toInt(), dict.at("type").toStringRef(), numbers_from(dict.at("sizes")),
          numbers_from(dict.at("order"))};
}

ShardEntry shard_entry_from(const c10::IValue& value) {
  const auto dict = value.toGenericDict();
  ShardEntry shard{dict.at("bytes").toInt(), {}};
  for (const auto& numbers : dict.at("pieces").toListRef()) {
    const auto piece = numbers_from(numbers);
    shard.pieces.push_back({piece.at(0), piece.at(1), piece.at(2)});
  }
  return shard;
}

ShardManifest manifest_from(const c10::impl::GenericDict& value) {
  ShardManifest manifest{set_from(value.at("set")), value.at("param_groups").toList(), {}, {}};
  for (const auto& one : value.at("parameters").toListRef()) manifest.parameters.push_back(saved_parameter_from(one));
  for (const auto& one : value.at("shards").toListRef()) manifest.shards.push_back(shard_entry_from(one));
  if (manifest.shards.size() != static_cast<std::size_t>(manifest.set.world_size)) {
    throw std::invalid_argument("not as many shards as ranks");
  }
  return manifest;
}

}  // namespace

ShardManifest manifest_of(const ShardSet& set, const FlatParameters& parameters, const c10::IValue& groups,
                          const StateMap& map) {
  ShardManifest manifest{set, groups, {}, {}};
  for (std::size_t i = 0; i < parameters.parameters().size(); ++i) {
    manifest.parameters.push_back(describe_saved(parameters.parameters()[i], map.index_of[i]));
  }
  for (int rank = 0; rank < set.world_size; ++rank) {
    auto& shard = manifest.shards.emplace_back();
    for (const auto& layout : parameters.layouts()) {
      for (const auto& part : parts_of(layout, rank, static_cast<int>(set.world_size))) {
        shard.pieces.push_back({static_cast<std::int64_t>(map.index_of[part.parameter]), part.begin, part.end});
      }
    }
  }
  return manifest;
}

void check_fits(const ShardManifest& manifest, const FlatParameters& parameters, const StateMap& map) {
  check_groups(manifest.groups.toList(), map);
  std::map<std::int64_t, SavedParameter> saved;
  for (const auto& parameter : manifest.parameters) saved.emplace(parameter.index, parameter);
  for (std::size_t i = 0; i < parameters.parameters().size(); ++i) {
    const auto own = describe_saved(parameters.parameters()[i], map.index_of[i]);
    const auto found = saved.find(own.index);
    if (found != saved.end()) check_same_parameter(found->second, own);
  }
}

void publish_manifest(const std::string& path, const ShardManifest& manifest) {
  auto parameters = plain_list(), shards = plain_list();
  for (const auto& parameter : manifest.parameters) parameters.push_back(value_of(parameter));
  for (const auto& shard : manifest.shards) shards.push_back(value_of(shard));
  auto value = described(kManifest);
  value.insert("set", value_of(manifest.set));
  value.insert("param_groups", manifest.groups);
  value.insert("parameters", parameters);
  value.insert("shards", shards);
  publish_value(path, value);
}

ShardManifest read_manifest(const std::string& path) {
  return reading(path, [&] { return manifest_from(checked_format(unpickle(path), kManifest, path)); });
}

}  // namespace taas
