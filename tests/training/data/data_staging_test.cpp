#include "training/data/data_staging.hpp"

#include <ATen/Functions.h>

#include <cstring>
#include <functional>
#include <stdexcept>

#include "catch.hpp"
#include "data/memory/copier.hpp"
#include "data/memory/slots.hpp"

namespace data_staging_test {

using namespace taas;

namespace {

constexpr std::int64_t kValues = 300'000;
constexpr std::size_t kBytes = kValues * sizeof(float);

/// A device that does nothing until it is told to.
struct LateDevice : data::Copier {
  bool pin(std::span<std::byte>) override { return true; }
  void unpin(std::span<std::byte>) override {}
  std::unique_ptr<data::CopyMark> mark() override { return std::make_unique<Mark>(*this, asked); }
  void run() {
    for (; done < asked; ++done) work[done]();
  }

  struct Mark : data::CopyMark {
    Mark(LateDevice& of, std::size_t behind) : device(of), place(behind) {}
    bool is_passed() override { return device.done >= place; }
    LateDevice& device;
    std::size_t place;
  };
  std::vector<std::function<void()>> work;
  std::size_t asked = 0;
  std::size_t done = 0;
};

struct LateCopies : DeviceCopies {
  explicit LateCopies(LateDevice& on) : device(on) {}
  Started start(const Tensors& batch) override {
    ++started;
    if (fails) throw std::runtime_error("out of memory");
    Started copy;
    for (const auto& tensor : batch) {
      copy.tensors.push_back(at::zeros_like(tensor));
      device.work.emplace_back([to = copy.tensors.back(), from = tensor.const_data_ptr()] {
        std::memcpy(to.mutable_data_ptr(), from, to.nbytes());
      });
      ++device.asked;
    }
    return copy;
  }
  Tensors finish(Started copy) override {
    device.run();
    return std::move(copy.tensors);
  }
  LateDevice& device;
  int started = 0;
  bool fails = false;
};

/// Batches full of their number, in slots of a little pool.
struct Deliveries {
  explicit Deliveries(const std::shared_ptr<data::Copier>& copier) { pool.use(copier); }

  std::optional<data::Outcome> operator()(Duration patience) {
    if (given >= available && patience == Duration(0)) return std::nullopt;
    pool.settle();
    if (given == raises) return ++given, data::Raised{.type = "Error", .text = "it raised", .pickled = {}};
    auto slot = pool.take(kBytes, data::SlotMemory::kShared, data::Room::kAnyway).value();
    auto payload = slot->bytes().first(kBytes);
    at::from_blob(payload.data(), {kValues}).fill_(given++);
    pool.give_away(*slot);
    return data::Batch{
        .description = std::make_shared<std::string>("Float[300000]"), .payload = payload, .slot = slot, .digest = 0};
  }

  data::SlotPool pool{4 << 20};
  int given = 0;
  int available = 1000;
  int raises = -1;
};

struct Loop {
  std::shared_ptr<LateDevice> device = std::make_shared<LateDevice>();
  std::shared_ptr<LateCopies> copies = std::make_shared<LateCopies>(*device);
  DataStaging staging{copies};
  Deliveries deliveries{device};

  std::optional<DataStaging::Staged> next(std::size_t wanted) {
    return staging.next(std::ref(deliveries), wanted, std::chrono::seconds(1));
  }
  bool gives(int number, std::size_t wanted) {
    auto staged = next(wanted);
    return staged && at::equal(staging.tensors_of(*staged).at(0), at::full({kValues}, number, at::kFloat));
  }
};

}  // namespace

TEST_CASE("batches are copied ahead of the loop, two of them, and late copies have the right bytes") {
  Loop loop;
  for (int number = 0; number < 50; ++number) {
    CHECK(loop.gives(number, static_cast<std::size_t>(50 - number)));
    CHECK(loop.copies->started == std::min(number + 3, 50));
  }
}

TEST_CASE("the loop does not wait for what is not there yet") {
  Loop loop;
  loop.deliveries.available = 0;
  CHECK(loop.gives(0, 10));
  CHECK(loop.copies->started == 1);
  loop.deliveries.available = 2;
  CHECK(loop.gives(1, 9));
  CHECK(loop.copies->started == 2);
}

TEST_CASE("a copy that fails ahead of the loop is tried again in its turn, and throws then") {
  Loop loop;
  CHECK(loop.gives(0, 10));
  loop.copies->fails = true;
  CHECK(loop.gives(1, 9));
  CHECK(loop.gives(2, 8));
  auto failed = loop.next(7);
  REQUIRE(failed);
  CHECK_THROWS_WITH(loop.staging.tensors_of(*failed), "out of memory");
  loop.copies->fails = false;
  CHECK(at::equal(loop.staging.tensors_of(*failed).at(0), at::full({kValues}, 3, at::kFloat)));
  CHECK(loop.gives(4, 6));
}

TEST_CASE("what is no batch comes in its place") {
  Loop loop;
  loop.deliveries.raises = 2;
  CHECK(loop.gives(0, 10));
  CHECK(loop.gives(1, 9));
  CHECK(std::holds_alternative<data::Raised>(loop.next(8)->delivery));
  CHECK(loop.gives(3, 7));
}

TEST_CASE("without a device nothing is taken ahead, and tensors stay where they are") {
  Loop loop;
  loop.staging = DataStaging();
  for (int number = 0; number < 5; ++number) {
    auto staged = loop.next(10);
    REQUIRE(staged);
    CHECK(loop.deliveries.given == number + 1);
    auto tensors = loop.staging.tensors_of(*staged);
    CHECK(tensors.at(0).const_data_ptr() == std::get<data::Batch>(staged->delivery).payload.data());
  }
  CHECK(loop.copies->started == 0);
}

}  // namespace data_staging_test
