// What happens to delivery when something goes wrong on the way.
#include "relay.hpp"
#include "worker.hpp"

namespace faults_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("a worker that dies loses nothing, and is taken again when it is back") {
  const auto way = GENERATE(from_range(kWays));
  INFO(way.name);
  Worker stable(way);
  Worker dying(way);
  Client client(options_for(way));
  client.set_workers({stable.address(), dying.address()});
  wait_until([&] { return client.statistics().workers_up == 2; });
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 60; ++i) client.submit(stream, task(i, 50'000));
  for (std::size_t i = 0; i < 60; ++i) {
    if (i == 10 || i == 30) dying.stop();
    if (i == 20 || i == 40) {
      dying.start();
      wait_until([&] { return client.statistics().workers_up == 2; });
    }
    expect_batch(client, stream, task(i, 50'000));
  }
  CHECK(has_line(client.take_remarks(), "worker is lost: the peer closed the link"));
}

TEST_CASE("a task that ends every worker is an error that says so, and the others are delivered") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[2]);
  INFO(way.name);
  constexpr std::size_t kDeadly = 3;
  Worker* itself = nullptr;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    job.payload == task(kDeadly, 1000) ? itself->die() : Worker::answer(server, job);
  });
  itself = &worker;
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 10; ++i) client.submit(stream, task(i, 1000));
  for (std::size_t i = 0; i < kDeadly; ++i) expect_batch(client, stream, task(i, 1000));
  std::optional<Outcome> outcome;
  int deaths = 0;
  for (; !outcome && deaths < 100; outcome = client.next(stream, std::chrono::milliseconds(1))) {
    if (!worker.is_dead()) continue;
    ++deaths;
    worker.stop();
    worker.start();
  }
  REQUIRE(outcome);
  CHECK(std::get<Undeliverable>(*outcome).message == "3 data workers ended, or were lost, while they worked on it");
  CHECK(deaths <= 4);  // the first one may not have said what it worked on
  for (std::size_t i = kDeadly + 1; i < 10; ++i) expect_batch(client, stream, task(i, 1000));
}

TEST_CASE("a worker ends well while clients wait for a definition that never comes") {
  const Way way{.name = "plain"};
  Worker worker(way);
  Client one(options_for(way));
  Client other(options_for(way));
  const auto ask = [](Client& client, bool for_what_never_comes) {
    const auto lost = client.open({.digest = std::string(32, 'c'), .bytes = nullptr});
    const auto stream = client.open(definition());
    if (for_what_never_comes) client.submit(lost, task(1, 10));
    client.submit(stream, task(1, 10));  // comes behind the other: when it is there, both were
    expect_batch(client, stream, task(1, 10));
  };
  for (auto* client : {&one, &other}) {
    client->set_workers({worker.address()});
    ask(*client, false);
  }
  for (auto* client : {&other, &one}) ask(*client, true);  // the link that ends first is the one that was asked
  worker.stop();
}

TEST_CASE("links that are cut again and again lose nothing") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[4]);
  INFO(way.name);
  Worker worker(way);
  Relay relay(worker.address());
  Client client(options_for(way));
  client.set_workers({relay.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 40; ++i) client.submit(stream, task(i, 300'000));
  for (std::size_t i = 0; i < 40; ++i) {
    if (i % 8 == 3) relay.cut();
    expect_batch(client, stream, task(i, 300'000));
  }
}

TEST_CASE("a worker that is frozen is gone after some pings, and what it had comes from others") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  Worker good(way);
  Worker frozen(way);
  Relay relay(frozen.address());
  Client client(options_for(way));
  client.set_workers({good.address(), relay.address()});
  wait_until([&] { return client.statistics().workers_up == 2; });
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 30; ++i) client.submit(stream, task(i, 100'000));
  for (std::size_t i = 0; i < 30; ++i) {
    if (i == 5) relay.freeze();
    expect_batch(client, stream, task(i, 100'000));
  }
  wait_until([&] { return client.statistics().workers_up == 1; });
  CHECK(has_line(client.take_remarks(), "no answer for 5 s"));
  relay.thaw();
  wait_until([&] { return client.statistics().workers_up == 2; });
}

TEST_CASE("a loop that has ended before it was asked what its loader is made of leaves the next one able to go on") {
  Worker worker(kWays[0]);
  Relay relay(worker.address());
  Client client(options_for(kWays[0]));
  client.set_workers({relay.address()});
  wait_until([&] { return client.statistics().workers_up == 1; });
  relay.freeze();
  const auto ended = client.open(definition());
  client.submit(ended, task(1, 1000));
  client.close(ended);
  relay.thaw();
  const auto other = client.open(definition("another dataset."));
  client.submit(other, task(2, 1000));
  expect_batch(client, other, task(2, 1000));  // the question about the first one has come before
  const auto next = client.open(definition());
  client.submit(next, task(3, 1000));
  expect_batch(client, next, task(3, 1000));
}

TEST_CASE("bytes that change on the way are noticed, and the batch is sent again") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[3], kWays[4]);
  INFO(way.name);
  Worker worker(way);
  Relay relay(worker.address());
  Client client(options_for(way));
  client.set_workers({relay.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 30; ++i) client.submit(stream, task(i, 200'000));
  for (std::size_t i = 0; i < 30; ++i) {
    if (i % 10 == 5) relay.disturb();
    expect_batch(client, stream, task(i, 200'000));
  }
  CHECK_FALSE(client.take_remarks().empty());
}

TEST_CASE("workers come and go while a loop runs") {
  const auto way = GENERATE(kWays[0], kWays[2]);
  Worker one(way);
  Worker two(way);
  Client client(options_for(way));
  client.set_workers({one.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 40; ++i) client.submit(stream, task(i, 30'000));
  for (std::size_t i = 0; i < 40; ++i) {
    if (i == 10) client.set_workers({one.address(), two.address()});
    if (i == 20) client.set_workers({{.name = "gone", .address = {}, .port = 0, .unix_path = {}}, two.address()});
    if (i == 30) client.set_workers({one.address()});
    expect_batch(client, stream, task(i, 30'000));
  }
}

}  // namespace faults_test
