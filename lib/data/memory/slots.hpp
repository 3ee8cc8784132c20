#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::data {

struct Arena;

/// One place for a batch: 64-byte aligned pages that were touched once. Belongs to whoever holds the shared_ptr; the
/// pool takes it back after the last one.
class Slot {
 public:
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

  /// Where it lies, for a worker that maps the same memory: in which arena, and where there.
  [[nodiscard]] std::uint32_t arena() const;
  [[nodiscard]] std::size_t arena_bytes() const;
  [[nodiscard]] std::size_t offset() const { return offset_; }
  /// Of the arena; none: this memory is shared with nobody.
  [[nodiscard]] const Fd& memory() const;

 private:
  friend class SlotStock;
  friend struct Arena;
  enum class Use { kFree, kTaken, kGivenAway };

  Slot() = default;
  std::uint32_t number_ = 0;
  std::size_t offset_ = 0;
  std::span<std::byte> bytes_;
  Arena* arena_ = nullptr;
  Use use_ = Use::kFree;
  bool abandoned_ = false;
};

enum class SlotMemory {
  kOwn,     ///< for batches from the network: in huge pages where the machine gives them
  kShared,  ///< for batches of workers on this machine: they write into it
};
enum class Room {
  kWithinBudget,
  kAnyway,  ///< a loop stands and waits for just this batch, or for one behind it in the same socket
};

/// Slots of what batches need, under a budget. A batch that the program holds on to is the program's memory and counts
/// no more: the pool makes another slot, so that list(loader) works as ever. Small slots share an arena, so that many
/// of them need few mappings and descriptors.
class SlotPool {
 public:
  explicit SlotPool(std::size_t budget_bytes);

  /// A slot of at least so many bytes: a free one, or a new one. Null: there is no room now (then `on_room` is called
  /// when there may be). An error: it alone is larger than the budget, or the machine has no memory left.
  Result<std::shared_ptr<Slot>> take(std::size_t bytes, SlotMemory memory, Room room);
  /// From now on the slot is the program's.
  void give_away(Slot& slot);
  /// A worker that is out of reach may still write into it: it is never used again.
  void abandon(Slot& slot);

  /// How many batches of this size fit into the budget, two left over for what the loop has in hand: at least 2.
  [[nodiscard]] int fitting(std::size_t bytes) const;
  /// Under way, waiting or free: all that is not the program's.
  [[nodiscard]] std::size_t held_bytes() const;
  [[nodiscard]] std::size_t budget_bytes() const;
  /// Arenas whose slots are not used any more, from the `seen`th on, so that workers can let go of them.
  [[nodiscard]] std::vector<std::uint32_t> forgotten(std::size_t seen) const;
  /// Called from any thread, without a lock.
  void on_room(std::function<void()> call);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::data
