#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace taas {

/// What belongs together: of one example, or of a batch (images and labels, say). On the CPU, strided.
using Tensors = std::vector<at::Tensor>;

/// What batches are made of. Data workers have their own copy, made by the same program; get() is called by one thread
/// at a time. For an index it gives the same wherever it is called, but for what it draws from torch's default CPU
/// generator: that is seeded anew for each batch.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  virtual Tensors get(std::size_t index) = 0;
};

/// Which part of an iterable dataset is to be read: one of count() shards of the whole run, of which this is the
/// index()th. Example n of all is in the shard n % count(), for instance.
struct Shard {
  std::size_t rank = 0;  ///< of the loop that the examples are for
  std::size_t world_size = 1;
  std::size_t worker = 0;       ///< which logical worker of that loop: get_worker_info().id in Python
  std::size_t num_workers = 1;  ///< DataLoaderOptions::num_workers
  std::uint64_t epoch = 0;      ///< of the loader

  [[nodiscard]] std::size_t index() const { return rank * num_workers + worker; }
  [[nodiscard]] std::size_t count() const { return world_size * num_workers; }
};

/// One pass over a shard: its examples, one after the other.
class Examples {
 public:
  virtual ~Examples() = default;
  /// The next one; nothing at the end.
  virtual std::optional<Tensors> next() = 0;
};

/// What batches are made of where examples come one after the other and have no index: a file that is read from front
/// to back, say. Data workers have their own copy, made by the same program; one thread at a time calls it and its
/// passes.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  /// A pass over the shard from its beginning. Where a data worker has died another one begins the same pass again, so
  /// that a pass keeps its state for itself (several may be under way at a time) and gives the same each time, but for
  /// what it draws from torch's default CPU generator: that is seeded for the pass, and anew for each batch.
  virtual std::unique_ptr<Examples> examples(const Shard& shard) = 0;
};

/// Makes a batch of examples. What it draws from torch's default generator is seeded anew for each batch.
using Collate = std::function<Tensors(std::vector<Tensors> examples)>;

/// The first tensors of all examples along a new first dimension, then the second ones, and so on. Throws
/// InvalidArgument when the examples differ in number, shape or dtype of their tensors.
Tensors stack(const std::vector<Tensors>& examples);

}  // namespace taas
