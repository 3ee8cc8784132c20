#include "training/zero/shard_files.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/group/rank_texts.hpp"
#include "training/backend/c10_error.hpp"
#include "training/zero/shard_pieces.hpp"
#include "training/zero/shard_values.hpp"

namespace taas {
namespace {

/// What went wrong in `work` on this rank, with the path at fault; empty: nothing.
template <class Work>
std::string failure_of(const ProcessGroup& group, const std::string& path, Work&& work) {
  const auto on_rank = "rank " + std::to_string(group.rank()) + ": ";
  try {
    work();
    return "";
  } catch (const CheckpointError& error) {
    const std::string text = error.what();
    return on_rank + (text.find(path) == std::string::npos ? path + ": " : "") + text;
  } catch (const std::exception& error) {
    return on_rank + path + ": " + one_line(error);
  }
}

/// Throws on every rank when one has failed.
void agree(const ProcessGroup& group, const std::string& failure) {
  const auto first = first_text(group, failure);
  if (!first.empty()) throw CheckpointError(first);
}

/// That of the manifest; none where there is none. What cannot be read is an error: nothing may be removed then.
std::optional<ShardSet> good_set(const ShardDirectory& directory) {
  std::error_code unreadable;
  const bool there = std::filesystem::exists(directory.manifest(), unreadable);
  if (!there && !unreadable) return std::nullopt;
  return read_manifest(directory.manifest()).set;
}

/// One save of one rank: each function is a collective, and throws on all ranks when it fails on one.
class ShardSave {
 public:
  ShardSave(const ShardedState& state, const std::string& path) : state_(state), path_(path), directory_(path) {}

  void begin(const Checkpoint& rest) {
    give_up_after(on_rank_zero([&] {
      if (!rest.optimizer.isNone()) throw CheckpointError("the shards hold the optimizer: leave it out of the rest");
      set_ = directory_.begin(rest.epoch, group().world_size(), good_set(directory_));
    }));
    set_ = {broadcast_text(group(), set_.name), group().world_size()};
  }

  void write(const Checkpoint& rest) {
    give_up_after(failure_of(group(), path_, [&] {
      bytes_ = publish_value(directory_.shard(set_, group().rank()),
                             shard_value(set_, group().rank(), state_.buckets, state_.map));
      if (group().rank() == 0) save_checkpoint(directory_.checkpoint(set_), rest);
    }));
  }

  void publish() {
    auto sizes = at::empty({group().world_size(), 1}, at::TensorOptions(at::kLong).device(group().device()));
    all_gather(group(), sizes, at::full({1}, static_cast<std::int64_t>(bytes_), sizes.options()));
    give_up_after(on_rank_zero([&] { publish_manifest(directory_.manifest(), manifest(sizes.cpu())); }));
    on_rank_zero([&] { directory_.clean(set_); });  // what stays is removed by the next save
    barrier(group());
  }

 private:
  [[nodiscard]] const ProcessGroup& group() const { return state_.group; }

  template <class Work>
  std::string on_rank_zero(Work&& work) {
    return group().rank() == 0 ? failure_of(group(), path_, work) : "";
  }

  /// Throws on every rank when one has failed, after what this save has written is removed. The manifest may be the
  /// new one already: that its name is on disk may be all that is not known.
  void give_up_after(const std::string& failure_here) {
    const auto failure = first_text(group(), failure_here);
    if (failure.empty()) return;
    on_rank_zero([&] { directory_.clean(good_set(directory_)); });
    barrier(group());
    throw CheckpointError(failure);
  }

  [[nodiscard]] ShardManifest manifest(const at::Tensor& sizes) const {
    auto manifest = manifest_of(set_, state_.parameters, groups_of(state_.buckets, state_.map), state_.map);
    for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
      manifest.shards[rank].bytes = sizes[static_cast<std::int64_t>(rank)].item<std::int64_t>();
    }
    return manifest;
  }

  const ShardedState& state_;
  std::string path_;
  ShardDirectory directory_;
  ShardSet set_;
  std::size_t bytes_ = 0;
};

void check_size(const std::string& path, std::int64_t bytes) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure) throw CheckpointError("cannot read " + path + ": " + failure.message());
  if (size == static_cast<std::uintmax_t>(bytes)) return;
  throw CheckpointError(path + " has " + std::to_string(size) + " bytes, but " + std::to_string(bytes) +
                        " were written: it is cut off or of another save");
}

/// One load of one rank: nothing is changed before finish().
class ShardLoad {
 public:
  ShardLoad(const ShardedState& state, const std::string& path) : state_(state), path_(path), directory_(path) {}

  /// All ranks go by the same manifest.
  void open() {
    const auto path = directory_.manifest();
    agree(group(), failure_of(group(), path, [&] { manifest_ = read_manifest(path); }));
    const auto first = broadcast_text(group(), manifest_.set.name);
    agree(group(), failure_of(group(), path, [&] {
            if (first == manifest_.set.name) return;
            throw CheckpointError(path + " names " + manifest_.set.name + ", but " + first +
                                  " on rank 0: give all ranks the same directory");
          }));
  }

  void read() {
    agree(group(),
          failure_of(group(), directory_.manifest(), [&] { check_fits(manifest_, state_.parameters, state_.map); }));
    const auto failure = failure_of(group(), path_, [&] {
      GatheredParts parts(state_.parameters, state_.map);
      for (std::size_t i = 0; i < manifest_.shards.size(); ++i) read_shard(i, parts);
      states_ = states_of_buckets(state_.buckets, state_.map, manifest_.groups.toList(),
                                  [&](const auto& /*part*/, std::size_t index) { return parts.state_of(index); });
      rest_ = load_checkpoint(directory_.checkpoint(manifest_.set));
    });
    agree(group(), failure);
  }

  Checkpoint finish() {
    const auto failure = failure_of(group(), directory_.manifest(), [&] { take_states(state_.buckets, states_); });
    if (!failure.empty()) throw CheckpointError(failure);
    return std::move(rest_);
  }

 private:
  [[nodiscard]] const ProcessGroup& group() const { return state_.group; }

  /// Each rank also looks for its share of the files that it does not read.
  void read_shard(std::size_t number, GatheredParts& parts) {
    const auto path = directory_.shard(manifest_.set, static_cast<std::int64_t>(number));
    const auto ranks = static_cast<std::size_t>(group().world_size());
    if (number % ranks == static_cast<std::size_t>(group().rank())) check_size(path, manifest_.shards[number].bytes);
    parts.read(path, manifest_, number);
  }

  const ShardedState& state_;
  std::string path_;
  ShardDirectory directory_;
  ShardManifest manifest_;
  std::vector<c10::IValue> states_;
  Checkpoint rest_;
};

}  // namespace

void save_shard_files(const ShardedState& state, const std::string& directory, const Checkpoint& rest) {
  ShardSave save(state, directory);
  save.begin(rest);
  save.write(rest);
  save.publish();
}

Checkpoint load_shard_files(const ShardedState& state, const std::string& directory) {
  ShardLoad load(state, directory);
  load.open();
  load.read();
  return load.finish();
}

}  // namespace taas
