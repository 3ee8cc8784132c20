#include "data/memory/arena.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "data/memory/memory.hpp"

namespace taas::data {

namespace {

/// Where memory is short, with the error in the words of data delivery.
Result<Fd> make_memory_for_slots(std::size_t bytes) {
  auto memory = make_shared_memory(bytes);
  if (memory) return memory;
  const int status = memory.error().system_errno;
  return status == ENOMEM || status == ENOSPC || status == EFBIG ? no_memory(bytes, status) : memory.error();
}

}  // namespace

std::size_t slot_size(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const auto step = std::clamp(std::bit_floor(std::max<std::size_t>(bytes, 1)) / 8, kPage, kHugePage);
  return std::max((bytes + step - 1) / step * step, kPage);
}

Result<std::unique_ptr<Arena>> Arena::make(SlotMemory kind, std::size_t slot_bytes, std::size_t count) {
  auto arena = std::make_unique<Arena>();
  arena->kind = kind;
  arena->slot_bytes = slot_bytes;
  arena->free = count;
  const auto bytes = slot_bytes * count;
  if (kind == SlotMemory::kShared) {
    auto memory = make_memory_for_slots(bytes);
    if (!memory) return memory.error();
    arena->memory = std::move(*memory);
  }
  auto mapping = kind == SlotMemory::kShared ? Mapping::of(arena->memory, bytes) : Mapping::of_own_memory(bytes);
  if (!mapping) return no_memory(bytes, mapping.error().system_errno);
  arena->mapping = std::move(*mapping);
  for (std::size_t i = 0; i < count; ++i) {
    std::unique_ptr<Slot> slot(new Slot);
    slot->offset_ = i * slot_bytes;
    slot->bytes_ = arena->mapping.bytes().subspan(slot->offset_, slot_bytes);
    slot->arena_ = arena.get();
    arena->slots.push_back(std::move(slot));
  }
  return arena;
}

std::uint32_t Slot::arena() const { return arena_->number; }
std::size_t Slot::arena_bytes() const { return arena_->mapping.bytes().size(); }
const Fd& Slot::memory() const { return arena_->memory; }

}  // namespace taas::data
