// The memory in which batches lie: whose it is, how long, and how much of it there is.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "worker.hpp"

namespace delivery_memory_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("a program may keep every batch, and memory goes back when it lets go") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  constexpr std::size_t kCount = 200;
  constexpr std::size_t kSize = 300'000;
  Worker worker(way);
  Client client(options_for(way, 4 << 20));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  std::vector<Batch> all;
  for (std::size_t i = 0; i < kCount; ++i) client.submit(stream, task(i, kSize));
  for (std::size_t i = 0; i < kCount; ++i) all.push_back(expect_batch(client, stream, task(i, kSize)));
  for (std::size_t i = 0; i < kCount; ++i) REQUIRE((text_of(all[i]) == make_bytes(task(i, kSize))));
  all.clear();
  client.submit(stream, task(7, kSize));
  expect_batch(client, stream, task(7, kSize));
}

TEST_CASE("batches outlive their client and their worker") {
  const auto way = GENERATE(from_range(kWays));
  std::optional<Batch> batch;
  {
    Worker worker(way);
    Client client(options_for(way));
    client.set_workers({worker.address()});
    const auto stream = client.open(definition());
    client.submit(stream, task(1, 100'000));
    batch = expect_batch(client, stream, task(1, 100'000));
  }
  CHECK((text_of(*batch) == make_bytes(task(1, 100'000))));
}

TEST_CASE("a forked child keeps the bytes of a batch that came over the network, whatever its parent does") {
  const Way way{.name = "plain"};
  constexpr std::size_t kSize = 500'000;
  Worker worker(way);
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, task(0, kSize));
  std::optional<Batch> batch = expect_batch(client, stream, task(0, kSize));
  const auto expected = make_bytes(task(0, kSize));
  int overwritten[2];
  REQUIRE(::pipe(overwritten) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char go = 0;
    const bool told = ::read(overwritten[0], &go, 1) == 1;
    ::_exit(told && std::memcmp(batch->payload.data(), expected.data(), kSize) == 0 ? 0 : 1);
  }
  const auto slot = batch->slot->number();
  batch.reset();
  bool again = false;
  for (std::size_t i = 1; i < 10; ++i) {
    client.submit(stream, task(i, kSize));
    again = expect_batch(client, stream, task(i, kSize)).slot->number() == slot || again;
  }
  CHECK(again);
  REQUIRE(::write(overwritten[1], "x", 1) == 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  ::close(overwritten[0]);
  ::close(overwritten[1]);
}

TEST_CASE("a slow loop does not make memory grow past the budget") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  constexpr std::size_t kBudget = 8 << 20;
  Worker one(way);
  Worker two(way);
  auto options = options_for(way, kBudget);
  options.schedule.most = options.schedule.depth;  // what was asked for while batches were small fits when they grow
  Client client(options);
  client.set_workers({one.address(), two.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 60; ++i) client.submit(stream, task(i, i < 5 ? 2000 : 1'000'000));
  for (std::size_t i = 0; i < 60; ++i) {
    if (i == 5) wait_until([&] { return client.statistics(stream).waiting >= 4; });
    CHECK(client.statistics().buffered_bytes <= kBudget);
    expect_batch(client, stream, task(i, i < 5 ? 2000 : 1'000'000));
  }
}

TEST_CASE("what a loop has not asked for yet gets no memory beyond the budget, even when it comes next") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  constexpr std::size_t kBudget = (8 << 20) + (1 << 19);  // eight batches, and small slots on the same machine
  constexpr std::size_t kSize = 1'000'000;
  constexpr std::size_t kCount = 20;  // half of them for each worker: more than fit
  std::atomic<bool> rest = false;
  std::atomic<bool> first = false;
  std::atomic<bool> first_is_made = false;
  const auto make = [&](Server& server, const Job& job) {
    const bool is_first = job.payload == task(0, kSize);
    const auto& gate = is_first ? first : rest;
    while (job.payload != "0 1000" && !gate && !server.is_withdrawn(job)) std::this_thread::yield();
    Worker::answer(server, job);
    if (is_first) first_is_made = true;
  };
  Worker one(way, kKey, make);
  Worker two(way, kKey, make);
  auto options = options_for(way, kBudget);
  options.schedule.depth = kCount;
  Client client(options);
  client.set_workers({one.address(), two.address()});
  wait_until([&] { return client.statistics().workers_up == 2; });
  const auto stream = client.open(definition());
  client.submit(stream, "0 1000");  // so that many seem to fit
  expect_batch(client, stream, "0 1000");
  for (std::size_t i = 0; i < kCount; ++i) client.submit(stream, task(i, kSize));
  rest = true;
  wait_until([&] { return client.statistics().waiting == 8; });
  first = true;
  wait_until([&] { return first_is_made.load(); });
  const auto until = steady_now() + std::chrono::milliseconds(100);  // it would come at once
  while (steady_now() < until) REQUIRE(client.statistics().buffered_bytes <= kBudget);
  for (std::size_t i = 0; i < kCount; ++i) {
    expect_batch(client, stream, task(i, kSize));
    CHECK(client.statistics().buffered_bytes <= kBudget);
  }
}

TEST_CASE("a loop that stands still does not hold up another one") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker worker(way);
  Client client(options_for(way, 4 << 20));
  client.set_workers({worker.address()});
  const auto resting = client.open(definition("train"));
  const auto busy = client.open(definition("validate"));
  for (std::size_t i = 0; i < 20; ++i) client.submit(resting, task(i, 1'500'000));
  expect_batch(client, resting, task(0, 1'500'000));
  for (std::size_t i = 0; i < 20; ++i) client.submit(busy, task(100 + i, 1'500'000));
  for (std::size_t i = 0; i < 20; ++i) expect_batch(client, busy, task(100 + i, 1'500'000));
  for (std::size_t i = 1; i < 20; ++i) expect_batch(client, resting, task(i, 1'500'000));
}

TEST_CASE("a batch larger than the buffer is refused with both sizes, and the next one comes") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker worker(way);
  Client client(options_for(way, 2'000'000));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  for (const std::size_t size : {1000, 3'000'000, 2000}) client.submit(stream, task(1, size));
  expect_batch(client, stream, task(1, 1000));
  const auto refused = expect<Undeliverable>(client, stream);
  CHECK_THAT(refused.message, ContainsSubstring("3.0 MB") && ContainsSubstring("--data-buffer of 2.0 MB"));
  expect_batch(client, stream, task(1, 2000));
}

TEST_CASE("a machine without descriptors for shared memory is an error that says so, and the next batch comes") {
  const Way way{.name = "unix", .family = AddressFamily::kUnix};
  Worker worker(way);
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, task(1, 1000));
  expect_batch(client, stream, task(1, 1000));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto first_free = static_cast<rlim_t>(Fd(::dup(0)).get());
  const rlimit none{.rlim_cur = first_free, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  client.submit(stream, task(1, 3'000'000));
  const auto refused = client.next(stream, kPatience);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(refused.has_value());
  REQUIRE(std::holds_alternative<Undeliverable>(*refused));
  CHECK_THAT(std::get<Undeliverable>(*refused).message, ContainsSubstring("cannot make memory"));
  client.submit(stream, task(2, 3'000'000));
  expect_batch(client, stream, task(2, 3'000'000));
}

}  // namespace delivery_memory_test
