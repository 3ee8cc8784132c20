#include "training/zero/shard_values.hpp"

#include <stdexcept>
#include <string_view>

#include "training/checkpoint/atomic_file.hpp"

namespace taas {
namespace {

constexpr std::int64_t kShardsVersion = 1;

}  // namespace

c10::impl::GenericDict described(const char* format) {
  auto value = plain_dict();
  value.insert("format", format);
  value.insert("version", kShardsVersion);
  return value;
}

c10::impl::GenericDict checked_format(const c10::IValue& value, const char* format, const std::string& path) {
  const auto is_described = [&] {
    if (!value.isGenericDict()) return false;
    const auto all = value.toGenericDict();
    return all.contains("format") && all.at("format").isString() && all.at("format").toStringRef() == format;
  };
  if (!is_described()) {
    throw CheckpointError(path + " is not a \"" + format + "\" of save_shards(): it was written by something else");
  }
  const auto version = value.toGenericDict().at("version").toInt();
  if (version != kShardsVersion) {
    throw CheckpointError(path + " is of version " + std::to_string(version) + ", and this libtaas reads version " +
                          std::to_string(kShardsVersion) + ": load it with the one that wrote it");
  }
  return value.toGenericDict();
}

c10::IValue value_of(const ShardSet& set) {
  auto value = plain_dict();
  value.insert("name", set.name);
  value.insert("world_size", set.world_size);
  return value;
}

ShardSet set_from(const c10::IValue& value) {
  const auto dict = value.toGenericDict();
  ShardSet set{dict.at("name").toStringRef(), dict.at("world_size").toInt()};
  const bool ours = set.name.starts_with(kSetPrefix) && set.name.find_first_of("./") == std::string::npos;
  if (!ours || set.world_size < 1) throw std::invalid_argument("no set of shards");
  return set;
}

std::size_t publish_value(const std::string& path, const c10::IValue& value) {
  AtomicFile file(path);
  pickle(value, [&file](std::string_view bytes) { file.write(bytes); });
  file.publish();
  return file.size();
}

}  // namespace taas
