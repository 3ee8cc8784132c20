#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace taas {

/// Keeps the loops of all ranks over one loader in step where batches that cannot be made are left out: each rank says
/// of each of its turns whether it has a batch, and a turn for which one rank has none is left out by all. A rank that
/// is at its end is not waited for any more. Through the run's store, so that no rank has to take part in anything
/// behind its end: each rank writes one short key for each turn, and removes it in the next turn, when all have read
/// it.
class SkipAgreement {
 public:
  /// `store` is for this loop alone.
  SkipAgreement(c10::intrusive_ptr<c10d::Store> store, std::size_t rank, std::size_t world_size,
                std::chrono::milliseconds timeout);
  /// Says that this rank's loop is over, unless end() has.
  ~SkipAgreement();
  SkipAgreement(const SkipAgreement&) = delete;
  SkipAgreement& operator=(const SkipAgreement&) = delete;

  /// The ranks that have no batch for this turn, in order; waits for those that are still in their loop. Throws
  /// CommunicationError naming the ranks that have not come within the timeout.
  std::vector<std::size_t> lacking(bool this_rank);
  void end();

 private:
  [[nodiscard]] std::string key(std::uint64_t turn, std::size_t rank) const;
  void say(const char* state);
  /// By those that are still in their loops, in their order.
  std::vector<std::string> said_by_others();
  [[noreturn]] void report_silent(const std::vector<std::string>& keys);

  c10::intrusive_ptr<c10d::Store> store_;
  std::size_t rank_;
  std::chrono::milliseconds timeout_;
  std::uint64_t turn_ = 0;
  std::vector<std::size_t> others_;  ///< still in their loops
  bool ended_ = false;
};

/// The store of a run's loaders, for a rank of several under a launcher. Throws CommunicationError.
c10::intrusive_ptr<c10d::Store> connect_loader_store(const std::string& loader, std::uint64_t loop,
                                                     std::chrono::milliseconds timeout);

}  // namespace taas
