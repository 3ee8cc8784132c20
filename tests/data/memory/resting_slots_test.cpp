#include "data/memory/resting_slots.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "catch.hpp"
#include "data/memory/slots.hpp"

namespace resting_slots_test {

using namespace taas;
using namespace taas::data;

namespace {

constexpr std::size_t kMegabyte = 1 << 20;

/// Copies late: what is asked for now is read when the test says so.
class LateCopier : public Copier {
 public:
  bool pin(std::span<std::byte>) override { return true; }
  void unpin(std::span<std::byte>) override {}
  std::unique_ptr<CopyMark> mark() override {
    ++marks;
    return std::make_unique<Mark>(*this, asked);
  }

  void copy(const Slot& slot, std::string& to) {
    work.emplace_back([from = slot.bytes().data(), &to] { std::memcpy(to.data(), from, to.size()); });
    ++asked;
  }
  void run(std::size_t count) {
    for (; count > 0 && !work.empty(); --count, ++done) {
      work.front()();
      work.pop_front();
    }
  }

  int marks = 0;

 private:
  struct Mark : CopyMark {
    Mark(LateCopier& of, std::size_t behind) : copier(of), place(behind) {}
    bool is_passed() override { return copier.done >= place; }
    LateCopier& copier;
    std::size_t place;
  };
  std::deque<std::function<void()>> work;
  std::atomic<std::size_t> asked = 0;
  std::atomic<std::size_t> done = 0;
};

std::shared_ptr<Slot> take(SlotPool& pool, Room room = Room::kWithinBudget) {
  return pool.take(kMegabyte, SlotMemory::kShared, room).value();
}

}  // namespace

TEST_CASE("a batch that was let go is copied whole, however late, whatever comes into the pool's memory") {
  constexpr std::size_t kCount = 100;
  const auto copier = std::make_shared<LateCopier>();
  SlotPool pool(8 * kMegabyte);
  pool.use(copier);
  std::vector<std::string> copies(kCount, std::string(kMegabyte, '\0'));
  for (std::size_t i = 0; i < kCount; ++i) {
    pool.settle();
    const auto slot = take(pool, Room::kAnyway);
    std::memset(slot->bytes().data(), static_cast<int>(i), kMegabyte);
    pool.give_away(*slot);
    copier->copy(*slot, copies[i]);
    if (i >= 3) copier->run(1);
  }
  copier->run(kCount);
  for (std::size_t i = 0; i < kCount; ++i) CHECK((copies[i] == std::string(kMegabyte, static_cast<char>(i))));
  CHECK(pool.held_bytes() <= 12 * kMegabyte);
}

TEST_CASE("what rests is under way: it counts, and is used again as soon as its copies are done") {
  const auto copier = std::make_shared<LateCopier>();
  SlotPool pool(4 * kMegabyte);
  pool.use(copier);
  std::vector<std::shared_ptr<Slot>> slots;
  while (auto slot = take(pool)) slots.push_back(std::move(slot));
  REQUIRE(slots.size() == 4);
  std::string copy(kMegabyte, '\0');
  std::set<std::uint32_t> numbers;
  for (auto& slot : slots) {
    pool.give_away(*slot);
    copier->copy(*slot, copy);
    numbers.insert(slot->number());
    slot.reset();
  }
  pool.settle();
  CHECK_FALSE(take(pool));
  CHECK(pool.held_bytes() == 4 * kMegabyte);
  int rings = 0;
  pool.on_room([&] { ++rings; });
  copier->run(4);
  pool.settle();
  CHECK(rings > 0);
  for (auto& slot : slots) {
    slot = take(pool);
    REQUIRE(slot);
    CHECK(numbers.contains(slot->number()));
  }
  CHECK_FALSE(take(pool));
}

TEST_CASE("a slot that the program never had does not rest") {
  const auto copier = std::make_shared<LateCopier>();
  SlotPool pool(4 * kMegabyte);
  pool.use(copier);
  std::string copy(1, '\0');
  auto slot = take(pool);
  copier->copy(*slot, copy);
  const auto number = slot->number();
  slot.reset();
  CHECK(take(pool)->number() == number);
  copier->run(1);
}

TEST_CASE("the device is asked for many slots at once, and at once when one is wanted") {
  const auto copier = std::make_shared<LateCopier>();
  SlotPool pool(1024 * kMegabyte);
  pool.use(copier);
  std::vector<std::shared_ptr<Slot>> slots;
  for (int i = 0; i < 16; ++i) {
    slots.push_back(take(pool));
    pool.give_away(*slots.back());
  }
  slots.pop_back();
  pool.settle();
  CHECK(copier->marks == 0);
  const auto wanted = take(pool);
  pool.settle();
  CHECK(copier->marks == 1);
  slots.clear();
  for (int i = 0; i < 5; ++i) pool.settle();
  CHECK(copier->marks == 1);
  for (int i = 0; i < 40; ++i) slots.push_back(take(pool));
  for (const auto& slot : slots) pool.give_away(*slot);
  slots.clear();
  pool.settle();
  CHECK(copier->marks == 2);
}

TEST_CASE("memory is there until the last copy out of it is done, whoever goes first") {
  const auto copier = std::make_shared<LateCopier>();
  std::string copy(kMegabyte, '\0');
  std::shared_ptr<Slot> slot;
  {
    SlotPool pool(8 * kMegabyte);
    pool.use(copier);
    slot = take(pool);
    pool.give_away(*slot);
    std::memset(slot->bytes().data(), 'x', kMegabyte);
  }
  copier->copy(*slot, copy);
  std::thread device([&] { copier->run(1); });
  slot.reset();
  device.join();
  CHECK((copy == std::string(kMegabyte, 'x')));
}

}  // namespace resting_slots_test
