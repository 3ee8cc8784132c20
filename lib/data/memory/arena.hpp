#pragma once

#include <memory>
#include <vector>

#include "base/memory.hpp"
#include "data/memory/slots.hpp"

namespace taas::data {

/// Some slots of one size in one mapping.
struct Arena {
  std::uint32_t number = 0;
  SlotMemory kind = SlotMemory::kOwn;
  Fd memory;
  Mapping mapping;
  std::size_t slot_bytes = 0;
  std::vector<std::unique_ptr<Slot>> slots;
  std::size_t free = 0;   ///< so many of them are in nobody's hands
  std::size_t given = 0;  ///< and so many in the program's
  bool retired = false;   ///< what comes back is not used again

  static Result<std::unique_ptr<Arena>> make(SlotMemory kind, std::size_t slot_bytes, std::size_t count);
};

/// What a slot for so many bytes really has: whole pages, in steps of an eighth, so that batches of similar size share
/// slots.
std::size_t slot_size(std::size_t bytes);

}  // namespace taas::data
