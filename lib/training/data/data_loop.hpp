#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "taas/data.hpp"
#include "training/agreement/skip_agreement.hpp"
#include "training/data/data_loader_state.hpp"
#include "training/data/data_order.hpp"
#include "training/data/data_staging.hpp"

namespace taas {

/// One epoch that is being looped over.
struct Batches::Loop {
  /// A batch, whoever has made it.
  struct Taken {
    Tensors tensors;
    std::uint64_t payload = 0;  ///< digest
    std::string description;    ///< without the head
    std::size_t bytes = 0;
    std::optional<StreamHead> head = std::nullopt;
  };

  ~Loop();
  /// `order` begins behind the batches that the loader's epoch has had.
  void begin(std::shared_ptr<DataLoader::State> of);
  std::optional<Tensors> next();

  /// Asks for as many batches as may be asked for.
  void fill();
  void submit(const OrderedTask& task);
  /// Nothing where its shard has ended. `lacks` becomes true when the batch could not be made and is to be left out.
  std::optional<Taken> take(const OrderedTask& task, bool& lacks);
  /// Whether this turn is left out, since this rank or another one lacks its batch.
  bool is_left_out(bool lacks);
  [[nodiscard]] std::string batch_name() const;
  Taken make(const OrderedTask& task);
  Taken receive(const OrderedTask& task);
  void end_shard(const OrderedTask& task);
  /// Throws DataError for a batch, or an end, that does not follow what the loop has had of the shard.
  void follow_chain(const OrderedTask& task, const Taken& taken);
  DataStaging::Staged wait_for_next();
  Tensors count(const OrderedTask& task, Taken taken);
  [[nodiscard]] bool has_enough() const;
  void finish();
  /// To the launcher: once a second, and at the end.
  void report();
  [[nodiscard]] data::Client* client() const { return loader->run ? loader->run->client() : nullptr; }

  std::shared_ptr<DataLoader::State> loader;  ///< null: it has not begun
  std::unique_ptr<BatchOrder> order;
  RankPlace place;
  std::optional<SkipAgreement> agreement;  ///< where several ranks leave out what one of them lacks
  DataStaging staging;
  data::StreamId stream = 0;
  std::deque<OrderedTask> asked;  ///< drawn and not taken
  bool may_be_prepared = false;   ///< --loader names it, and this is the first loop
  std::size_t largest = 0;        ///< batch so far, in bytes
  bool done = false;
  Instant since = steady_now();
  Instant reported{};
};

}  // namespace taas
