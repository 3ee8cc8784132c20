#include "training/zero/shard_pieces.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/zero/shard_values.hpp"

namespace taas {
namespace {

using Dict = c10::impl::GenericDict;

constexpr const char* kShard = "taas shard";
constexpr const char* kBegin = "begin";
constexpr const char* kEnd = "end";

bool is_place(const std::string& name) { return name == kBegin || name == kEnd; }

/// The states in a shard that is the one of this set and rank.
Dict states_in(const c10::IValue& value, const ShardSet& set, std::size_t rank, const std::string& path) {
  const auto all = checked_format(value, kShard, path);
  const auto whose = set_from(all.at("set"));
  if (whose != set || all.at("rank").toInt() != static_cast<std::int64_t>(rank)) {
    throw CheckpointError(path + " is the shard of rank " + std::to_string(all.at("rank").toInt()) + " of " +
                          whose.name + ", and not the one that the manifest names: the files are mixed");
  }
  return all.at("state").toGenericDict();
}

}  // namespace

c10::IValue shard_value(const ShardSet& set, int rank, const std::vector<BucketOptimizer>& buckets,
                        const StateMap& map) {
  auto states = plain_dict();
  for (const auto& bucket : buckets) {
    const auto own = optimizer_state(*bucket.optimizer, StateTensors::kShared).toGenericDict().at("state");
    for (const auto& entry : own.toGenericDict()) {
      const auto& part = bucket.shards.at(static_cast<std::size_t>(entry.key().toInt())).part;
      auto state = plain_dict();
      state.insert(kBegin, part.begin);
      state.insert(kEnd, part.end);
      for (const auto& field : entry.value().toGenericDict()) state.insert(field.key(), field.value());
      states.insert(static_cast<std::int64_t>(map.index_of[part.parameter]), state);
    }
  }
  auto value = described(kShard);
  value.insert("set", value_of(set));
  value.insert("rank", static_cast<std::int64_t>(rank));
  value.insert("state", states);
  return value;
}

GatheredParts::GatheredParts(const FlatParameters& parameters, const StateMap& map) {
  for (std::size_t b = 0; b < parameters.size(); ++b) {
    for (const auto& shard : parameters.shards(b)) {
      const auto index = static_cast<std::int64_t>(map.index_of[shard.part.parameter]);
      parts_.emplace(index, Part{shard.part.begin, shard.part.end, 0, plain_dict()});
    }
  }
}

void GatheredParts::read(const std::string& path, const ShardManifest& manifest, std::size_t rank) {
  std::vector<std::pair<Part*, ShardPiece>> overlapping;
  for (const auto& piece : manifest.shards.at(rank).pieces) {
    const auto found = parts_.find(piece.parameter);
    if (found == parts_.end() || piece.begin >= found->second.end || piece.end <= found->second.begin) continue;
    overlapping.emplace_back(&found->second, piece);
  }
  if (overlapping.empty()) return;
  reading(path, [&] {
    PickledFile file(path);
    const auto states = states_in(file.value(), manifest.set, rank, path);
    for (const auto& [part, piece] : overlapping) {
      if (states.contains(piece.parameter)) add(*part, piece, states.at(piece.parameter).toGenericDict(), file);
    }
  });
}

void GatheredParts::add(Part& part, const ShardPiece& piece, const Dict& saved, PickledFile& file) {
  if (saved.at(kBegin).toInt() != piece.begin || saved.at(kEnd).toInt() != piece.end) {
    throw std::invalid_argument("another piece than in the manifest");
  }
  const auto begin = std::max(part.begin, piece.begin), end = std::min(part.end, piece.end);
  for (const auto& field : saved) {
    const auto& name = field.key().toStringRef();
    if (is_place(name)) continue;
    if (!field.value().isTensor()) {
      part.state.insert_or_assign(name, field.value());
      continue;
    }
    const auto tensor = file.read(field.value().toTensor());
    const auto own = tensor.slice(0, begin - piece.begin, end - piece.begin);
    if (own.numel() != end - begin) throw std::invalid_argument("a tensor of another length");
    if (!part.state.contains(name)) part.state.insert(name, at::empty({part.end - part.begin}, tensor.options()));
    part.state.at(name).toTensor().slice(0, begin - part.begin, end - part.begin).copy_(own);
  }
  part.found += end - begin;
}

std::optional<Dict> GatheredParts::state_of(std::size_t index) const {
  const auto& part = parts_.at(static_cast<std::int64_t>(index));
  if (part.found == 0) return std::nullopt;
  if (part.found == part.end - part.begin) return part.state;
  throw CheckpointError("only a part of parameter " + std::to_string(index) + " has a state in the shards");
}

}  // namespace taas
