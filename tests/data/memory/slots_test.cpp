#include "data/memory/slots.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace slots_test {

using namespace taas;
using namespace taas::data;

namespace {

constexpr std::size_t kMegabyte = 1 << 20;

std::shared_ptr<Slot> take(SlotPool& pool, std::size_t bytes, Room room = Room::kWithinBudget,
                           SlotMemory memory = SlotMemory::kOwn) {
  return pool.take(bytes, memory, room).value();
}

}  // namespace

TEST_CASE("a slot comes back and is used again") {
  const auto memory = GENERATE(SlotMemory::kOwn, SlotMemory::kShared);
  SlotPool pool(64 * kMegabyte);
  auto slot = take(pool, 10 * kMegabyte, Room::kWithinBudget, memory);
  REQUIRE(slot);
  CHECK(slot->bytes().size() >= 10 * kMegabyte);
  CHECK(reinterpret_cast<std::uintptr_t>(slot->bytes().data()) % 64 == 0);
  std::memset(slot->bytes().data(), 1, slot->bytes().size());
  const auto number = slot->number();
  slot.reset();
  CHECK(take(pool, 10 * kMegabyte - 5, Room::kWithinBudget, memory)->number() == number);
  CHECK(static_cast<bool>(take(pool, kMegabyte, Room::kWithinBudget, memory)->memory()) ==
        (memory == SlotMemory::kShared));
}

TEST_CASE("batches of a few bytes share memory, and use it again") {
  SlotPool pool(64 * kMegabyte);
  auto slot = take(pool, 5);
  const auto held = pool.held_bytes();
  CHECK(take(pool, 1)->arena() == slot->arena());
  const auto number = slot->number();
  slot.reset();
  CHECK(take(pool, 5)->number() == number);
  CHECK(pool.held_bytes() == held);
}

TEST_CASE("slots do not overlap") {
  SlotPool pool(64 * kMegabyte);
  std::vector<std::shared_ptr<Slot>> slots;
  for (int i = 0; i < 100; ++i) {
    slots.push_back(take(pool, 100'000));
    std::memset(slots.back()->bytes().data(), i, slots.back()->bytes().size());
  }
  for (int i = 0; i < 100; ++i) {
    const auto bytes = slots[static_cast<std::size_t>(i)]->bytes();
    CHECK(bytes.front() == static_cast<std::byte>(i));
    CHECK(bytes.back() == static_cast<std::byte>(i));
  }
}

TEST_CASE("there is no more than the budget, except for what the loop waits for") {
  SlotPool pool(10 * kMegabyte);
  std::vector<std::shared_ptr<Slot>> slots;
  while (auto slot = take(pool, 2 * kMegabyte)) slots.push_back(std::move(slot));
  CHECK(slots.size() == 5);
  CHECK(pool.held_bytes() <= 10 * kMegabyte);
  CHECK(take(pool, 2 * kMegabyte, Room::kAnyway));
  int rings = 0;
  pool.on_room([&] { ++rings; });
  slots.pop_back();
  CHECK(rings > 0);
  CHECK(take(pool, 2 * kMegabyte));
}

TEST_CASE("what comes back when the budget is used up stays empty until there is room") {
  SlotPool pool(10 * kMegabyte);
  std::vector<std::shared_ptr<Slot>> slots;
  while (auto slot = take(pool, 2 * kMegabyte)) slots.push_back(std::move(slot));
  auto in_hand = std::exchange(slots[0], nullptr);
  pool.give_away(*in_hand);
  slots[0] = take(pool, 2 * kMegabyte);
  REQUIRE(slots[0]);
  const auto number = in_hand->number();
  in_hand.reset();
  CHECK_FALSE(take(pool, 2 * kMegabyte));
  CHECK(take(pool, 2 * kMegabyte, Room::kAnyway)->number() == number);
  CHECK_FALSE(take(pool, 2 * kMegabyte));
  pool.give_away(*slots[1]);
  CHECK(take(pool, 2 * kMegabyte)->number() == number);
}

TEST_CASE("free slots of another size make way") {
  SlotPool pool(10 * kMegabyte);
  for (const std::size_t size : {kMegabyte, 9 * kMegabyte, 100'000 * std::size_t{1}, 5 * kMegabyte}) {
    CHECK(take(pool, size));
    CHECK(pool.held_bytes() <= 10 * kMegabyte);
  }
}

TEST_CASE("what alone is larger than the budget is refused with both sizes") {
  SlotPool pool(2'000'000);
  const auto refused = pool.take(3'100'000, SlotMemory::kOwn, Room::kAnyway);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring("3.1 MB") && ContainsSubstring("--data-buffer of 2.0 MB"));
}

TEST_CASE("what was given away counts no more, and comes back as far as there is room") {
  const auto memory = GENERATE(SlotMemory::kOwn, SlotMemory::kShared);
  SlotPool pool(8 * kMegabyte);
  std::vector<std::shared_ptr<Slot>> kept;
  for (int i = 0; i < 100; ++i) {
    kept.push_back(take(pool, kMegabyte, Room::kWithinBudget, memory));
    REQUIRE(kept.back());
    pool.give_away(*kept.back());
  }
  CHECK(pool.held_bytes() <= 8 * kMegabyte);
  CHECK(pool.forgotten(0).empty() == (memory == SlotMemory::kOwn));
  kept.clear();
  CHECK(pool.held_bytes() <= 10 * kMegabyte);
  CHECK(take(pool, kMegabyte, Room::kWithinBudget, memory));
}

TEST_CASE("an abandoned slot is never used again") {
  SlotPool pool(64 * kMegabyte);
  auto slot = take(pool, 8 * kMegabyte, Room::kWithinBudget, SlotMemory::kShared);
  const auto number = slot->number();
  const auto held = pool.held_bytes();
  pool.abandon(*slot);
  CHECK(pool.held_bytes() < held);
  slot.reset();
  for (int i = 0; i < 3; ++i) {
    slot = take(pool, 8 * kMegabyte, Room::kWithinBudget, SlotMemory::kShared);
    CHECK(slot->number() != number);
  }
}

TEST_CASE("slots outlive their pool") {
  std::shared_ptr<Slot> slot;
  {
    SlotPool pool(8 * kMegabyte);
    slot = take(pool, kMegabyte);
    pool.give_away(*slot);
  }
  std::memset(slot->bytes().data(), 1, slot->bytes().size());
}

TEST_CASE("at least two batches are always under way") {
  SlotPool pool(100 * kMegabyte);
  CHECK(pool.fitting(10 * kMegabyte) == 8);
  CHECK(pool.fitting(99 * kMegabyte) == 2);
  CHECK(pool.fitting(1) > 1000);
}

}  // namespace slots_test
