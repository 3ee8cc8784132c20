#include "data/memory/slot_map.hpp"

#include "data/memory/memory.hpp"

namespace taas::data {

Result<> SlotMap::add(std::uint32_t slot, const SlotPlace& place, const Fd& memory) {
  if (memory) {
    if (!is_shared_memory(memory, place.arena_bytes))
      return protocol_error("what was offered as a slot's memory is none");
    auto mapping = Mapping::of(memory, place.arena_bytes);
    if (!mapping) return no_memory(place.arena_bytes, mapping.error().system_errno);
    forget_arena(place.arena);
    arenas_.emplace(place.arena, std::move(*mapping));
  }
  const auto arena = arenas_.find(place.arena);
  if (arena == arenas_.end()) return protocol_error("a slot in memory that was not sent");
  const auto bytes = arena->second.bytes();
  if (place.offset > bytes.size() || place.bytes > bytes.size() - place.offset) {
    return protocol_error("a slot outside its memory");
  }
  slots_[slot] = {.arena = place.arena, .bytes = bytes.subspan(place.offset, place.bytes)};
  return {};
}

void SlotMap::forget_arena(std::uint32_t arena) {
  std::erase_if(slots_, [arena](const auto& entry) { return entry.second.arena == arena; });
  arenas_.erase(arena);
}

std::span<std::byte> SlotMap::find(std::uint32_t slot) const {
  const auto found = slots_.find(slot);
  return found == slots_.end() ? std::span<std::byte>() : found->second.bytes;
}

}  // namespace taas::data
