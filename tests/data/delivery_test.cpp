// Client and server together, over real sockets.
#include <sys/wait.h>
#include <unistd.h>

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
  Worker worker(way, kKey, [](Server& server, const Job& job) { server.put(job, {}, nullptr); });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  CHECK(expect<Batch>(client, stream).payload.empty());
}

TEST_CASE("each buffer begins at a multiple of 64, and what lies between is zero") {
  const auto way = GENERATE(from_range(kWays));
  const auto first = std::make_shared<std::string>(10, 'a');
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto bytes = std::as_bytes(std::span(*first));
    server.put(job, {bytes, {}, bytes.first(3)}, first);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  CHECK(text_of(expect<Batch>(client, stream)) == *first + std::string(54, '\0') + "aaa");
}

TEST_CASE("an exception arrives as it was raised") {
  const auto way = GENERATE(from_range(kWays));
  Worker worker(way, kKey, [](Server& server, const Job& job) {
    server.raise(job, {.type = "ValueError", .text = "Traceback\n  line", .pickled = std::string("\0x", 2)});
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "raise");
  const auto raised = expect<Raised>(client, stream);
  CHECK(raised.type == "ValueError");
  CHECK(raised.text == "Traceback\n  line");
  CHECK(raised.pickled == std::string("\0x", 2));
  CHECK(raised.worker == 0);
}

TEST_CASE("what is above a limit is an error that says so, and the link stays") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker worker(way, kKey, [](Server& server, const Job& job) {
    if (job.payload != "raise") return Worker::answer(server, job);
    server.raise(job, {.type = "ValueError", .text = "Traceback\n  line", .pickled = std::string(65 << 20, 'p')});
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "raise");
  client.submit(stream, std::string(65 << 20, 'i'));
  client.submit(stream, task(1, 2000));
  const auto raised = expect<Raised>(client, stream);
  CHECK(raised.text == "Traceback\n  line");
  CHECK(raised.pickled.empty());
  CHECK_THAT(expect<Undeliverable>(client, stream).message, ContainsSubstring("the indices of a batch have 68.2 MB"));
  expect_batch(client, stream, task(1, 2000));
  CHECK(client.take_remarks().empty());
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
    server.put(job, {}, nullptr);
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
