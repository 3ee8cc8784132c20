#include "data/memory/slot_stock.hpp"

#include <utility>
#include <vector>

#include "catch.hpp"

namespace slot_stock_test {

using namespace taas;
using namespace taas::data;

namespace {

constexpr std::size_t kMegabyte = 1 << 20;

/// A stock with one arena of so many slots of one megabyte.
SlotStock make_stock(std::size_t budget, std::size_t count, SlotMemory memory = SlotMemory::kOwn) {
  SlotStock stock(budget);
  stock.reserve(kMegabyte, count);
  static_cast<void>(stock.take_back(*stock.add(Arena::make(memory, kMegabyte, count).value())));
  return stock;
}

Slot& take(SlotStock& stock, SlotMemory memory = SlotMemory::kOwn) {
  auto* slot = stock.find_free(kMegabyte, memory);
  REQUIRE(slot != nullptr);
  stock.take(*slot);
  return *slot;
}

}  // namespace

TEST_CASE("slots of another kind of memory, and much larger ones, are not found") {
  const auto stock = make_stock(8 * kMegabyte, 2);
  CHECK(stock.find_free(kMegabyte, SlotMemory::kOwn) != nullptr);
  CHECK(stock.find_free(kMegabyte, SlotMemory::kShared) == nullptr);
  CHECK(stock.find_free(kMegabyte / 4, SlotMemory::kOwn) == nullptr);
  CHECK(stock.find_free(2 * kMegabyte, SlotMemory::kOwn) == nullptr);
}

TEST_CASE("what the program has is not held, and is again when it comes back") {
  auto stock = make_stock(8 * kMegabyte, 2);
  auto& slot = take(stock);
  CHECK(stock.held() == 2 * kMegabyte);
  stock.give_away(slot);
  CHECK(stock.held() == kMegabyte);
  CHECK(stock.take_back(slot) == nullptr);
  CHECK(stock.held() == 2 * kMegabyte);
}

TEST_CASE("memory that is being made for a batch is taken already") {
  auto stock = make_stock(kMegabyte, 1);
  auto& slot = take(stock);
  stock.give_away(slot);
  stock.reserve(kMegabyte, 1);
  CHECK(stock.take_back(slot) == nullptr);  // meanwhile the program lets go of the other one
  CHECK_FALSE(stock.may_take(slot));
  auto& made = *stock.add(Arena::make(SlotMemory::kOwn, kMegabyte, 1).value());
  CHECK_FALSE(stock.may_take(slot));
  static_cast<void>(stock.take_back(made));
  CHECK(stock.may_take(slot));
  stock.reserve(kMegabyte, 1);
  stock.cancel_reservation(kMegabyte, 1);
  CHECK(stock.may_take(slot));
}

TEST_CASE("room is made of arenas that nobody uses only") {
  auto stock = make_stock(2 * kMegabyte, 2);
  auto& slot = take(stock);
  std::vector<std::unique_ptr<Arena>> dropped;
  CHECK_FALSE(stock.make_room(kMegabyte, dropped));
  CHECK(stock.take_back(slot) == nullptr);
  CHECK(stock.make_room(kMegabyte, dropped));
  CHECK(dropped.size() == 1);
  CHECK(stock.held() == 0);
  CHECK(stock.forgotten() == std::vector<std::uint32_t>{0});
}

TEST_CASE("a slot that was abandoned is never found again, and goes with its arena") {
  auto stock = make_stock(8 * kMegabyte, 1);
  auto& slot = take(stock);
  stock.abandon(slot);
  stock.abandon(slot);  // once is enough
  CHECK(stock.held() == 0);
  CHECK(stock.find_free(kMegabyte, SlotMemory::kOwn) == nullptr);
  CHECK(stock.take_back(slot) != nullptr);
}

TEST_CASE("an arena of shared memory that a program keeps whole is retired above the budget") {
  auto stock = make_stock(kMegabyte, 2, SlotMemory::kShared);
  auto& first = take(stock, SlotMemory::kShared);
  auto& second = take(stock, SlotMemory::kShared);
  stock.give_away(first);
  CHECK(stock.forgotten().empty());
  stock.give_away(second);
  CHECK(stock.forgotten() == std::vector<std::uint32_t>{0});
  CHECK(stock.take_back(first) == nullptr);
  CHECK(stock.find_free(kMegabyte, SlotMemory::kShared) == nullptr);
  CHECK(stock.take_back(second) != nullptr);
  CHECK(stock.held() == 0);
}

TEST_CASE("a new arena is as large as those that there are, with the budget and up to what is left of it") {
  CHECK(SlotStock(8 * kMegabyte).slots_to_make(kMegabyte) == 1);
  CHECK(SlotStock(80 * kMegabyte).slots_to_make(kMegabyte) == 4);
  CHECK(make_stock(80 * kMegabyte, 7).slots_to_make(kMegabyte) == 7);
  CHECK(make_stock(80 * kMegabyte, 20).slots_to_make(kMegabyte) == 10);
  CHECK(make_stock(1'000 * kMegabyte, 1).slots_to_make(4096) == 64);
  auto full = make_stock(2 * kMegabyte, 2);
  CHECK(full.slots_to_make(4096) == 1);
}

}  // namespace slot_stock_test
