#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "data/memory/arena.hpp"
#include "data/memory/slots.hpp"

namespace taas::data {

/// The arenas of a pool, and what becomes of each of their slots: how much of the budget is held, and by whom. Without
/// a lock of its own. An arena that is not needed any more is handed to the caller, who destroys it when no lock is
/// held.
class SlotStock {
 public:
  explicit SlotStock(std::size_t budget_bytes) : budget_(budget_bytes) {}

  /// A free one, the one that was used last, whose pages are still in the cache; null: none has this size.
  [[nodiscard]] Slot* find_free(std::size_t bytes, SlotMemory memory) const;
  /// Within the budget, with all that is under way.
  [[nodiscard]] bool may_take(const Slot& slot) const { return taken_ + slot.bytes_.size() <= budget_; }
  void take(Slot& slot);

  /// Lets free slots of other sizes go until so many bytes fit into the budget; false: they do not.
  bool make_room(std::size_t bytes, std::vector<std::unique_ptr<Arena>>& dropped);
  [[nodiscard]] std::size_t slots_to_make(std::size_t slot_bytes) const;
  /// For an arena that is being made for a batch, which has one of its slots from now on.
  void reserve(std::size_t slot_bytes, std::size_t count);
  void cancel_reservation(std::size_t slot_bytes, std::size_t count);
  /// The arena that was reserved. Returns the slot of its batch, which is taken.
  Slot* add(std::unique_ptr<Arena> arena);

  void give_away(Slot& slot);
  void abandon(Slot& slot);
  std::unique_ptr<Arena> take_back(Slot& slot);

  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] std::size_t budget() const { return budget_; }
  [[nodiscard]] const std::vector<std::uint32_t>& forgotten() const { return forgotten_; }

 private:
  std::unique_ptr<Arena> remove(Arena& arena);

  std::size_t budget_;
  std::map<std::uint32_t, std::unique_ptr<Arena>> arenas_;
  std::vector<Slot*> free_;  // the one used last is at the back
  std::size_t held_ = 0;
  std::size_t taken_ = 0;  // of these: not free
  std::size_t given_ = 0;
  std::vector<std::uint32_t> forgotten_;
  std::uint32_t next_slot_ = 0;
  std::uint32_t next_arena_ = 0;
};

}  // namespace taas::data
