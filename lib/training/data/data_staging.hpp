#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "data/client/client.hpp"
#include "training/ddp/device_copies.hpp"

namespace taas {

/// Deliveries of one loop, taken ahead of it as far as they are there: their tensors are on the way to a device. With
/// no device they are taken one by one.
class DataStaging {
 public:
  /// So many are on the device, or on their way, beside the one that the loop has.
  static constexpr std::size_t kAhead = 2;

  struct Staged {
    data::Outcome delivery;  ///< of a batch whose copy has started without its memory
    std::optional<DeviceCopies::Started> started;
  };
  /// The next delivery; nothing when the patience is over first.
  using Source = std::function<std::optional<data::Outcome>(Duration patience)>;

  explicit DataStaging(std::shared_ptr<DeviceCopies> copies = nullptr) : copies_(std::move(copies)) {}

  /// `wanted` is how many tasks the loop has asked for and not got, this one included.
  std::optional<Staged> next(const Source& source, std::size_t wanted, Duration patience);
  /// The tensors of a batch, where they belong.
  Tensors tensors_of(Staged& staged);
  Tensors moved(Tensors tensors);

 private:
  bool take(const Source& source, Duration patience);
  void start(Staged& staged);

  std::shared_ptr<DeviceCopies> copies_;
  std::deque<Staged> ahead_;
};

}  // namespace taas
