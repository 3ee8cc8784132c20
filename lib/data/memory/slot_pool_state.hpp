#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "data/memory/arena.hpp"
#include "data/memory/resting_slots.hpp"
#include "data/memory/slots.hpp"

namespace taas::data {

/// Shared by a pool and all slots that are in somebody's hands.
struct SlotPool::State {
  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::size_t budget = 0;
  pid_t process = ::getpid();

  mutable std::mutex mutex;
  std::map<std::uint32_t, std::unique_ptr<Arena>> arenas;
  std::vector<Slot*> free;  ///< the one used last is at the back
  std::size_t held = 0;
  std::size_t taken = 0;  ///< of these: not free
  std::size_t given = 0;
  std::vector<std::uint32_t> forgotten;
  std::uint32_t next_slot = 0;
  std::uint32_t next_arena = 0;
  std::function<void()> on_room;
  std::shared_ptr<Copier> copier;
  RestingSlots resting;
  bool pressed = false;  ///< somebody wanted a slot, and there was none but resting ones

  [[nodiscard]] Slot* find_free(std::size_t bytes, SlotMemory memory) const;
  void take(Slot& slot);
  bool make_room(std::size_t bytes, std::vector<std::unique_ptr<Arena>>& dropped);
  [[nodiscard]] std::size_t slots_to_make(std::size_t slot_bytes) const;
  Slot* add(std::unique_ptr<Arena> arena);
  void give_away(Slot& slot);
  /// The arena is destroyed by the caller, who does not hold the mutex then.
  std::unique_ptr<Arena> take_back(Slot& slot);
  /// The same for a slot that nobody has any more: it may have to rest first.
  std::unique_ptr<Arena> let_go(Slot& slot);
  void rest(Slot& slot);
  /// Takes back what has rested. True: there was something.
  bool collect(std::vector<std::unique_ptr<Arena>>& dropped);
  std::unique_ptr<Arena> remove(Arena& arena);
  void tell_of_room();
};

}  // namespace taas::data
