#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/memory.hpp"
#include "data/wire/frame.hpp"

namespace taas::data {

/// A worker's view of the memory that one client on the same machine shares with it.
class SlotMap {
 public:
  /// `memory` comes with the first slot of an arena.
  Result<> add(std::uint32_t slot, const SlotPlace& place, const Fd& memory);
  void forget_arena(std::uint32_t arena);
  /// Empty: no such slot.
  [[nodiscard]] std::span<std::byte> find(std::uint32_t slot) const;

 private:
  struct Known {
    std::uint32_t arena;
    std::span<std::byte> bytes;
  };
  std::map<std::uint32_t, Mapping> arenas_;
  std::map<std::uint32_t, Known> slots_;
};

}  // namespace taas::data
