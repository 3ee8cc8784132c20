#pragma once

#include <ATen/core/ivalue.h>
#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "taas/dataset.hpp"

namespace taas {

struct DataLoaderOptions {
  std::size_t batch_size = 1;
  bool drop_last = false;  ///< leave out a last batch that is not full; of an iterable dataset, that of each shard
  /// Into how many shards each rank's loop splits an iterable dataset. Batches come from them in turn, and each is read
  /// by one data worker at a time: num_workers times the number of ranks of them have something to do.
  std::size_t num_workers = 1;
  Collate collate = stack;
  /// What batches' seeds are made of, with the rank, the loader's name, the epoch and the batch's number. By default
  /// what torch's generator was seeded with (torch::manual_seed) when the epoch begins.
  std::optional<std::uint64_t> seed{};
  /// Batches lie in page-locked memory, out of which a GPU copies while the program goes on (to(device, dtype, true)).
  /// What data workers make is received into such memory as soon as the program uses a GPU; anything else is copied
  /// into it. A batch may be let go while it is being copied. Without a GPU batches are as they are.
  bool pin_memory = false;
  /// Where batches arrive: on the CPU, or on a GPU (at::kCUDA is the one that the program uses when the loop begins).
  /// They are copied on a stream of their own, two batches ahead of the loop, and are ready for this thread's current
  /// stream.
  at::Device device = at::kCPU;
  /// With taas-run --data-on-error skip: a batch that one rank cannot make is left out by all ranks, so that they take
  /// the same number of steps. Each batch then costs a few short messages to the run's store, and all ranks have to
  /// loop over the loader, for any number of batches each. false: for a loop that only some ranks make.
  bool agree_on_skips = true;
};

class Batches;
struct ServedLoader;

/// Gives a dataset's batches in a sampler's order, or those of an iterable dataset in that of its shards. Under
/// `taas-run --cpus N` data workers make them, N machines full of processes of this same program; otherwise this
/// process does. The bytes are the same either way, and the default generator of this process stays as it is. One loop
/// at a time, in one thread.
class DataLoader {
 public:
  /// `name` tells the program's loaders apart. Throws InvalidArgument for an empty name or a batch size of 0.
  DataLoader(std::string name, std::shared_ptr<Dataset> dataset, DataLoaderOptions options = {});
  /// Throws InvalidArgument for a num_workers of 0 as well.
  DataLoader(std::string name, std::shared_ptr<IterableDataset> dataset, DataLoaderOptions options = {});

  /// An epoch of a dataset with indices: the sampler starts over (after its set_epoch(), where it has one) and is drawn
  /// from ahead of the loop; it must outlive it. A loop that goes on in the middle of an epoch needs the same sampler
  /// again: see resume(). Throws ConfigError when DataLoaderOptions::device is not there.
  Batches batches(torch::data::samplers::Sampler<>& sampler);
  /// An epoch of an iterable dataset: the batches of its shards in turn, until the last one has ended. A dataset that
  /// does not look at its Shard gives all of its examples in each shard of each rank. Throws CheckpointError when the
  /// state that the loop is to go on from is another rank's.
  Batches batches();

  /// Where the loop is, for Checkpoint::extra: {"epoch", "batch", "digest", "samples", "order"}: epochs before this
  /// one, batches taken of it, a digest chained over their bytes, samples taken in all epochs, and what the default
  /// generator was like when the order was drawn (None between epochs). Two loops with equal digests had equal bytes.
  /// Of a loop over an iterable dataset it is this rank's own, and has "stream" besides.
  [[nodiscard]] c10::IValue state() const;
  /// The next batches() go on behind the last batch that the saved loop has had, whatever the number of data workers is
  /// now. A stream is read again up to there. Throws CheckpointError for what is no such state, and for one of a stream
  /// that was saved with another num_workers.
  void resume(const c10::IValue& state);

  struct State;

 private:
  friend bool serve_data(const std::vector<ServedLoader>& loaders);
  std::shared_ptr<State> state_;
};

/// One loop over a loader: `for (auto& batch : loader.batches(sampler))`, or next(). What is under way is thrown away
/// with it. Throws DataError when the dataset's code has thrown, here or in a data worker, and when no worker can make
/// a batch (or leaves the batch out, on all ranks: taas-run --data-on-error skip; CommunicationError when ranks cannot
/// agree on that).
class Batches {
 public:
  class Iterator {
   public:
    using value_type = Tensors;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Batches* loop) : loop_(loop) { ++*this; }
    Tensors& operator*() { return *batch_; }
    Iterator& operator++() {
      batch_.reset();  // its memory may be the next one's
      batch_ = loop_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    Batches* loop_;
    std::optional<Tensors> batch_;
  };

  Batches(Batches&&) noexcept;
  Batches& operator=(Batches&&) noexcept;
  ~Batches();

  /// The next batch, nothing at the end. Its tensors lie in memory that is used again when the last of them is gone,
  /// and, where it is page-locked, when the copies are done that were asked for on torch's streams until then. A child
  /// that is forked meanwhile shares the memory of batches that a data worker on this machine has made: they are not
  /// its own.
  std::optional<Tensors> next();

  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() { return {}; }

  struct Loop;

 private:
  friend class DataLoader;
  explicit Batches(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

/// Makes the sampler that this rank's first loop over a loader will have, after its set_epoch() where it has one.
using SamplerOfRank =
    std::function<std::shared_ptr<torch::data::samplers::Sampler<>>(std::size_t rank, std::size_t world_size)>;

/// A loader as data workers are to have it, and what `taas-run --loader NAME` needs to know besides.
struct ServedLoader {
  ServedLoader(DataLoader the_loader, SamplerOfRank of_rank = {})
      : loader(std::move(the_loader)), sampler(std::move(of_rank)) {}

  DataLoader loader;      ///< a copy, which is the same loader
  SamplerOfRank sampler;  ///< none: nothing of it can be prepared before the ranks start
};

/// In a data worker (TAAS_ROLE) makes batches until the run is over and returns true: the program then ends. Anywhere
/// else returns false at once. To be called with all loaders, before init():
///
///     if (taas::serve_data({train, test})) return 0;
///     if (taas::serve_data({{train, sampler_of_rank}, test})) return 0;   // taas-run --loader train
///
/// The second form lets `taas-run --loader train` have the first batches of all ranks made before the ranks start.
/// Their order is the sampler's, and their seed that of DataLoaderOptions, or else the one that torch::manual_seed()
/// was given before this call: torch's own is another one in each process. They are a cache: ranks that ask for other
/// batches get those. Throws ConfigError for an environment that does not fit, and for a --loader that is not among
/// `loaders` or has no sampler; InvalidArgument for two loaders of one name, and for a sampler where the dataset is
/// iterable: its shards have an order without one.
bool serve_data(const std::vector<ServedLoader>& loaders);

}  // namespace taas
