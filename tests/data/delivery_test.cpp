// Client and server together, over real sockets.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>

#include "data/wire/digest.hpp"
#include "worker.hpp"

namespace delivery_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("batches arrive in order and to the byte, whatever the way and the size") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker one(way);
  Worker two(way);
  Client client(options_for(way));
  client.set_workers({one.address(), two.address()});
  const auto stream = client.open(definition());
  std::vector<std::size_t> sizes{1, 63, 64, 65, 4095, 4096, 100'000, (1 << 20) - 1, 1 << 20, (3 << 20) + 7, 5, 200'000};
  for (std::size_t i = 0; i < 40; ++i) sizes.push_back(1000 + 977 * i);
  for (std::size_t i = 0; i < sizes.size(); ++i) client.submit(stream, task(i, sizes[i]));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto batch = expect_batch(client, stream, task(i, sizes[i]));
    CHECK(batch.digest == digest_of(batch.payload));
  }
  CHECK(client.statistics(stream).batches == sizes.size());
  CHECK(client.statistics().buffered_bytes == 0);
  CHECK(client.take_remarks().empty());
}

TEST_CASE("a batch without buffers is a batch") {
  const auto way = GENERATE(from_range(kWays));
  Worker worker(way, kKey, [](Server& server, const Job& job) { server.put(job, "nothing", {}, nullptr); });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  const auto batch = expect<Batch>(client, stream);
  CHECK(*batch.description == "nothing");
  CHECK(batch.payload.empty());
}

TEST_CASE("each buffer begins at a multiple of 64, and what lies between is zero") {
  const auto way = GENERATE(from_range(kWays));
  const auto first = std::make_shared<std::string>(10, 'a');
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto bytes = std::as_bytes(std::span(*first));
    server.put(job, "two", {bytes, {}, bytes.first(3)}, first);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  CHECK(text_of(expect<Batch>(client, stream)) == *first + std::string(54, '\0') + "aaa");
}

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
  Client client(options_for(way, kBudget));
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

TEST_CASE("what is no batch arrives too: exceptions, the end of a shard") {
  const auto way = GENERATE(from_range(kWays));
  Worker worker(way, kKey, [](Server& server, const Job& job) {
    if (job.payload == "end") return server.exhausted(job);
    server.raise(job, {.type = "ValueError", .text = "Traceback\n  line", .pickled = std::string("\0x", 2)});
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "raise");
  client.submit(stream, "end");
  const auto raised = expect<Raised>(client, stream);
  CHECK(raised.type == "ValueError");
  CHECK(raised.text == "Traceback\n  line");
  CHECK(raised.pickled == std::string("\0x", 2));
  CHECK(raised.worker == 0);
  expect<Exhausted>(client, stream);
}

TEST_CASE("what is above a limit is an error that says so, and the link stays") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker worker(way, kKey, [](Server& server, const Job& job) {
    if (job.payload == "describe") return server.put(job, std::string(17 << 20, 'd'), {}, {});
    if (job.payload != "raise") return Worker::answer(server, job);
    server.raise(job, {.type = "ValueError", .text = "Traceback\n  line", .pickled = std::string(65 << 20, 'p')});
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  for (const auto* payload : {"describe", "raise"}) client.submit(stream, payload);
  client.submit(stream, std::string(65 << 20, 'i'));
  client.submit(stream, task(1, 2000));
  CHECK_THAT(expect<Raised>(client, stream).text, ContainsSubstring("the description of a batch has 17.8 MB"));
  const auto raised = expect<Raised>(client, stream);
  CHECK(raised.text == "Traceback\n  line");
  CHECK(raised.pickled.empty());
  CHECK_THAT(expect<Undeliverable>(client, stream).message, ContainsSubstring("the indices of a batch have 68.2 MB"));
  expect_batch(client, stream, task(1, 2000));
  CHECK(client.take_remarks().empty());
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

TEST_CASE("what one worker gives back another one makes; what all give back is said to be undeliverable") {
  const auto way = GENERATE(from_range(kWays));
  const auto give_back = [](Server& server, const Job& job) { server.give_back(job, "out of memory"); };
  Worker poor(way, kKey, give_back);
  Client client(options_for(way));
  client.set_workers({poor.address()});
  const auto stream = client.open(definition());
  client.submit(stream, task(1, 10));
  CHECK(expect<Undeliverable>(client, stream).message == "out of memory");
  Worker rich(way);
  client.set_workers({poor.address(), rich.address()});
  wait_until([&] { return client.statistics().workers_up == 2; });
  for (std::size_t i = 0; i < 10; ++i) client.submit(stream, task(i, 10));
  for (std::size_t i = 0; i < 10; ++i) CHECK(expect_batch(client, stream, task(i, 10)).worker == 1);
}

TEST_CASE("jobs of a closed stream are withdrawn") {
  const auto way = GENERATE(from_range(kWays));
  std::atomic<bool> begun = false;
  std::atomic<bool> withdrawn = false;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    if (job.payload != "long") return Worker::answer(server, job);
    begun = true;
    while (!server.is_withdrawn(job)) std::this_thread::yield();
    withdrawn = true;
    server.put(job, "late", {}, nullptr);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto first = client.open(definition());
  client.submit(first, "long");
  wait_until([&] { return begun.load(); });
  client.close(first);
  const auto second = client.open(definition());
  client.submit(second, task(1, 1000));
  expect_batch(client, second, task(1, 1000));
  CHECK(withdrawn);
  CHECK(std::holds_alternative<Undeliverable>(*client.next(first, kPatience)));
}

TEST_CASE("the definition is there when a job is") {
  const auto way = GENERATE(from_range(kWays));
  std::atomic<int> there = 0;
  const std::string text(3'000'001, 'd');
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto found = server.definition(job.digest);
    if (found && found->bytes == text && !found->memory.descriptor) ++there;
    Worker::answer(server, job);
  });
  Client one(options_for(way));
  Client two(options_for(way));
  for (auto* client : {&one, &two}) {
    client->set_workers({worker.address()});
    const auto stream = client->open(definition(text));
    client->submit(stream, task(1, 10));
    expect_batch(*client, stream, task(1, 10));
  }
  CHECK(there == 2);
}

TEST_CASE("memory of a definition goes along: the same on this machine, a copy elsewhere") {
  const auto way = GENERATE(from_range(kWays));
  const std::string text(3'000'001, 'm');
  auto memory = SealedMemory::copy_of(std::as_bytes(std::span(text)));
  REQUIRE(memory.has_value());
  const auto inode_of = [](const SealedMemory& of) {
    struct stat status = {};
    return ::fstat(of.descriptor.get(), &status) == 0 ? status.st_ino : 0;
  };
  const auto inode = inode_of(*memory);
  std::atomic<int> same = 0;
  std::atomic<int> whole = 0;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto found = server.definition(job.digest);
    const auto mapping = Mapping::to_read(found->memory.descriptor, found->memory.bytes);
    const bool is_whole = mapping && found->bytes == "a dataset" && mapping->bytes().size() == text.size() &&
                          std::memcmp(mapping->bytes().data(), text.data(), text.size()) == 0;
    if (is_whole) ++whole;
    if (inode_of(found->memory) == inode) ++same;
    Worker::answer(server, job);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  auto meant = definition();
  meant.memory = std::make_shared<const SealedMemory>(std::move(*memory));
  const auto stream = client.open(meant);
  client.submit(stream, task(1, 10));
  expect_batch(client, stream, task(1, 10));
  CHECK(whole == 1);
  CHECK(same == (worker.address().unix_path.empty() ? 0 : 1));
}

TEST_CASE("only sealed memory of the size that is said is a dataset's") {
  auto open_to_writing = make_shared_memory(64);
  REQUIRE(open_to_writing.has_value());
  CHECK_FALSE(SealedMemory::of(std::move(*open_to_writing), 64).has_value());
  const std::string text(64, 'm');
  auto sealed = SealedMemory::copy_of(std::as_bytes(std::span(text)));
  REQUIRE(sealed.has_value());
  CHECK_FALSE(SealedMemory::of(Fd(::dup(sealed->descriptor.get())), 65).has_value());
  CHECK(SealedMemory::of(Fd(::dup(sealed->descriptor.get())), 64).has_value());
}

TEST_CASE("a definition that is loaded is let go, and asked for again once it is not loaded any more") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[2]);
  std::atomic<int> came = 0;
  std::atomic<int> let_go = 0;
  std::atomic<bool> keep = true;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    if (auto found = server.definition(job.digest)) {
      ++came;
      const std::weak_ptr held = found;
      server.loaded(job.digest);
      found.reset();
      if (held.expired()) ++let_go;
    }
    if (!keep) server.unloaded(job.digest);
    Worker::answer(server, job);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 20; ++i) {
    keep = i < 10;
    client.submit(stream, task(i, 10));
    expect_batch(client, stream, task(i, 10));
    CHECK(came == (i <= 10 ? 1 : static_cast<int>(i) - 9));
    CHECK(let_go == came);
  }
}

TEST_CASE("without any worker that is said at once") {
  Client client(options_for(kWays[0]));
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  CHECK_THAT(expect<Undeliverable>(client, stream).message, ContainsSubstring("no data worker"));
}

TEST_CASE("a forked child is told that it cannot receive, and ends") {
  const auto way = GENERATE(kWays[0], kWays[2]);
  Worker worker(way);
  std::optional<Client> client(std::in_place, options_for(way));
  client->set_workers({worker.address()});
  const auto stream = client->open(definition());
  client->submit(stream, task(1, 100));
  auto batch = std::make_optional(expect_batch(*client, stream, task(1, 100)));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto delivery = client->next(stream, kPatience);
    const bool told = delivery && std::holds_alternative<Undeliverable>(*delivery);
    batch.reset();
    client.reset();
    ::_exit(told ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace delivery_test
