#include "data/memory/cuda_copier.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "data/fake_cuda.hpp"
#include "data/memory/slots.hpp"
#include "data/worker.hpp"

namespace cuda_copier_test {

using namespace taas;
using namespace taas::data;

namespace {

constexpr std::size_t kMegabyte = 1 << 20;
int some_stream = 0;
int other_stream = 0;

CudaLibrary fake_library() { return CudaLibrary::of_program("libfake_cuda", "libfake_cuda").value(); }

/// A program that uses device 1 alone, with two streams beside the default one.
std::shared_ptr<CudaCopier> make_copier() {
  fake_cuda_reset();
  fake_cuda_use_device(1);
  auto copier = std::make_shared<CudaCopier>(fake_library());
  copier->add_streams(1, {nullptr, &some_stream, &other_stream});
  return copier;
}

std::shared_ptr<Slot> give(SlotPool& pool, SlotMemory memory = SlotMemory::kOwn) {
  auto slot = pool.take(2 * kMegabyte, memory, Room::kWithinBudget).value();
  REQUIRE(slot);
  pool.give_away(*slot);
  return slot;
}

}  // namespace

TEST_CASE("without CUDA in the program there is none, and what is missing is named") {
  const auto none = CudaLibrary::of_program("libno_such_cudart", "libfake_cuda");
  REQUIRE_FALSE(none.has_value());
  CHECK_THAT(none.error().message, ContainsSubstring("has not loaded libno_such_cudart"));
  CHECK_FALSE(CudaLibrary::of_program("libfake_cuda", "libno_such_driver").has_value());
  const auto other = CudaLibrary::of_program("libc.so", "libfake_cuda");
  REQUIRE_FALSE(other.has_value());
  CHECK_THAT(other.error().message, ContainsSubstring("cudaHostRegister"));
}

TEST_CASE("only devices that the program uses are touched") {
  fake_cuda_reset();
  const auto copier = std::make_shared<CudaCopier>(fake_library());
  CHECK(copier->new_devices().empty());
  std::vector<std::byte> memory(4096);
  CHECK_FALSE(copier->pin(memory));
  CHECK(copier->problem().empty());
  fake_cuda_use_device(1);
  CHECK(copier->new_devices() == std::vector{1});
  CHECK_FALSE(copier->mark());
  copier->add_streams(1, {nullptr});
  CHECK(copier->pin(memory));
  CHECK(copier->mark());
  fake_cuda_use_device(0);
  CHECK(copier->new_devices() == std::vector{0});
  CHECK_FALSE(copier->mark());
  copier->unpin(memory);
  CHECK(fake_cuda_mistakes() == 0);
}

TEST_CASE("a pool's memory is registered once, what it has and what it gets, and let go before it is unmapped") {
  const auto before = fake_cuda_registrations();
  const auto copier = make_copier();
  {
    SlotPool pool(64 * kMegabyte);
    auto early = give(pool);
    CHECK_FALSE(early->is_pinned());
    pool.use(copier);
    auto late = give(pool, SlotMemory::kShared);
    for (const auto& slot : {early, late}) {
      CHECK(slot->is_pinned());
      CHECK(fake_cuda_is_registered(slot->bytes().data(), slot->bytes().size()));
    }
  }
  CHECK(fake_cuda_registrations() == before);
  CHECK(fake_cuda_mistakes() == 0);
}

TEST_CASE("a slot that a stream still copies from is not used again") {
  const auto copier = make_copier();
  void* stream = GENERATE(static_cast<void*>(nullptr), static_cast<void*>(&some_stream));
  SlotPool pool(4 * kMegabyte + 4096);
  pool.use(copier);
  auto slot = give(pool);
  std::memset(slot->bytes().data(), 'a', kMegabyte);
  std::string copy(kMegabyte, '\0');
  fake_cuda_copy(stream, copy.data(), slot->bytes().data(), kMegabyte);
  const auto number = slot->number();
  slot.reset();
  for (int i = 0; i < 5; ++i) {
    pool.settle();
    if (auto other = pool.take(2 * kMegabyte, SlotMemory::kOwn, Room::kWithinBudget).value())
      std::memset(other->bytes().data(), 'b', other->bytes().size());
  }
  fake_cuda_run();
  CHECK(copy == std::string(kMegabyte, 'a'));
  pool.settle();
  CHECK(give(pool)->number() == number);
  CHECK(fake_cuda_mistakes() == 0);
}

TEST_CASE("while a graph is captured no stream is asked, and slots wait") {
  const auto copier = make_copier();
  SlotPool pool(64 * kMegabyte);
  pool.use(copier);
  auto slot = give(pool);
  const auto number = slot->number();
  fake_cuda_capture(&other_stream, 1);
  slot.reset();
  CHECK_FALSE(copier->mark());
  for (int i = 0; i < 3; ++i) {
    pool.settle();
    CHECK(pool.take(2 * kMegabyte, SlotMemory::kOwn, Room::kAnyway).value()->number() != number);
  }
  fake_cuda_capture(&other_stream, 0);
  CHECK(copier->mark());
  CHECK(fake_cuda_mistakes() == 0);
}

TEST_CASE("memory that CUDA refuses stays as it is, and the reason is told once") {
  const auto copier = make_copier();
  fake_cuda_refuse(2);
  SlotPool pool(64 * kMegabyte);
  pool.use(copier);
  auto slot = give(pool);
  CHECK_FALSE(slot->is_pinned());
  CHECK(copier->problem() == "CUDA cannot register 8.4 MB of memory: a fake error");
  fake_cuda_refuse(0);
  CHECK_FALSE(give(pool, SlotMemory::kShared)->is_pinned());
  const auto number = slot->number();
  fake_cuda_copy(nullptr, slot->bytes().data(), slot->bytes().data(), 1);
  slot.reset();
  CHECK(give(pool)->number() == number);
  CHECK(fake_cuda_mistakes() == 0);
}

TEST_CASE("a forked child calls CUDA for nothing") {
  const auto copier = make_copier();
  auto pool = std::make_unique<SlotPool>(64 * kMegabyte);
  pool->use(copier);
  auto slot = give(*pool);
  fake_cuda_copy(&some_stream, slot->bytes().data(), slot->bytes().data(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    pool.reset();
    slot.reset();
    const bool untouched = fake_cuda_mistakes() == 0 && !copier->mark() && copier->new_devices().empty();
    ::_exit(untouched && fake_cuda_registrations() > 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  fake_cuda_run();
}

TEST_CASE("whatever the way, batches come in registered memory, and late copies read what came") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  const auto copier = make_copier();
  constexpr std::size_t kCount = 60;
  constexpr std::size_t kSize = 700'000;
  std::vector<std::string> copies(kCount, std::string(kSize, '\0'));
  {
    Worker worker(way);
    Client client(options_for(way, 8 << 20));
    client.use(copier);
    client.set_workers({worker.address()});
    const auto stream = client.open(definition());
    for (std::size_t i = 0; i < kCount; ++i) client.submit(stream, task(i, kSize));
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto batch = expect_batch(client, stream, task(i, kSize));
      CHECK(fake_cuda_is_registered(batch.payload.data(), batch.payload.size()));
      fake_cuda_copy(i % 2 == 0 ? &some_stream : nullptr, copies[i].data(), batch.payload.data(), kSize);
      if (i % 7 == 6) fake_cuda_run();
    }
    fake_cuda_run();
  }
  for (std::size_t i = 0; i < kCount; ++i) CHECK((copies[i] == make_bytes(task(i, kSize))));
  CHECK(fake_cuda_mistakes() == 0);
}

}  // namespace cuda_copier_test
