// What happens to delivery when something goes wrong on the way.
#include <array>
#include <functional>

#include "data/transport/handshake.hpp"
#include "data/wire/frame.hpp"
#include "relay.hpp"
#include "worker.hpp"

namespace faults_test {

using namespace taas;
using namespace taas::data;

namespace {

bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  for (const auto& line : lines) UNSCOPED_INFO(line);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

/// Bytes to a worker's port, as a stranger would send them.
void say(const WorkerAddress& address, const std::string& bytes) {
  Wakeup wakeup;
  const auto socket = connect_tcp(address.address, address.port, wakeup, kPatience).value();
  REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// A connection that has proved the secret.
std::unique_ptr<Transport> log_in(const WorkerAddress& address, const Way& way) {
  Wakeup wakeup;
  const auto handshake = Handshake::make(net::Role::kClient, {.run_id = kRun, .key = kKey}, way.encryption).value();
  return handshake
      .run(connect_tcp(address.address, address.port, wakeup, kPatience).value(), AddressFamily::kTcp, wakeup,
           kPatience)
      .value();
}

void send_all(Transport& transport, std::string text) {
  const std::vector<iovec> parts{{text.data(), text.size()}};
  REQUIRE(transport.write(parts).value() == text.size());
  REQUIRE(transport.flush().has_value());
}

std::string text(const HeaderBytes& header) { return {reinterpret_cast<const char*>(header.data()), header.size()}; }

void check_serves(Worker& worker, const Way& way) {
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, task(3, 5000));
  expect_batch(client, stream, task(3, 5000));
}

}  // namespace

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
  CHECK(std::get<Undeliverable>(*outcome).message == "5 data workers ended, or were lost, while they worked on it");
  CHECK(deaths <= 6);  // the first one may not have said what it worked on
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

TEST_CASE("who does not know the secret is refused by both ends in one line") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[2]);
  INFO(way.name);
  Worker worker(way, std::string(32, 'w'));
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  client.submit(stream, "x");
  CHECK(expect<Undeliverable>(client, stream).message == "worker cannot be used: wrong secret");
  CHECK(client.take_remarks() == std::vector<std::string>{"worker cannot be used: wrong secret"});
  std::vector<std::string> refusals;
  wait_until([&] {
    for (auto& line : worker.server().take_remarks()) refusals.push_back(std::move(line));
    return !refusals.empty();
  });
  CHECK(has_line(refusals, "a connection was refused: "));
  CHECK(worker.made() == 0);
}

TEST_CASE("a plain client and a worker with TLS, and the other way round, refuse each other") {
  const auto client_way = GENERATE(kWays[0], kWays[1]);
  const auto worker_way = client_way.encryption == Encryption::kTls ? kWays[0] : kWays[1];
  Worker worker(worker_way);
  Client client(options_for(client_way));
  client.set_workers({worker.address()});
  std::vector<std::string> refusals;
  wait_until([&] {
    for (auto& line : worker.server().take_remarks()) refusals.push_back(std::move(line));
    return !refusals.empty();
  });
  CHECK(has_line(refusals, "a connection was refused: "));
  CHECK(client.statistics().workers_up == 0);
}

TEST_CASE("garbage from strangers is turned away, and the worker goes on") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  INFO(way.name);
  Worker worker(way);
  Wakeup wakeup;
  const auto half_open = connect_tcp("127.0.0.1", worker.address().port, wakeup, kPatience).value();
  for (const auto& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4096, '\0'), std::string(4096, '\xff'),
                            std::string("\x16\x03\x01"), std::string("taas-run data 1\n"), std::string()}) {
    say(worker.address(), bytes);
  }
  check_serves(worker, way);
}

TEST_CASE("a crowd of silent strangers keeps no client out, and turns out nobody who has proved himself") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  INFO(way.name);
  constexpr int kCrowd = 100;  // more than may be there at a time
  Worker worker(way);
  const auto earlier = log_in(worker.address(), way);
  const auto hello = text(encode({.kind = FrameKind::kHello}, ""));
  send_all(*earlier, hello);
  Wakeup wakeup;
  std::vector<Fd> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.push_back(connect_tcp("127.0.0.1", worker.address().port, wakeup, kPatience).value());
  }
  const auto later = log_in(worker.address(), way);
  for (const auto& proved : {std::cref(earlier), std::cref(later)}) {
    if (&proved.get() == &later) send_all(*later, hello);
    std::array<std::byte, 1> first{};
    wait_until([&] { return proved.get()->read(first).value() == 1; });
  }
  check_serves(worker, way);
}

TEST_CASE("who knows the secret and sends nonsense is cut off, and the worker goes on") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  INFO(way.name);
  const auto nonsense = GENERATE(
      std::string(200, 'x'),                         // no frame
      text(encode({.kind = FrameKind::kTask}, "")),  // no hello
      text(encode({.kind = FrameKind::kHello}, "")) +
          text(encode({.kind = FrameKind::kReady}, "")),  // a worker's frame
      text(encode({.kind = FrameKind::kHello}, "")) + text(encode({.kind = FrameKind::kHello}, "")),
      text(encode({.kind = FrameKind::kHello}, "")) + text(encode({.kind = FrameKind::kSlotOffer, .slot = 1}, "")));
  Worker worker(way);
  const auto transport = log_in(worker.address(), way);
  send_all(*transport, nonsense);
  std::vector<std::string> remarks;
  wait_until([&] {
    for (auto& line : worker.server().take_remarks()) remarks.push_back(std::move(line));
    return !remarks.empty();
  });
  CHECK(has_line(remarks, "a client was cut off: "));
  check_serves(worker, way);
}

TEST_CASE("a frame that is never finished is nobody's loss") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  Worker worker(way);
  auto transport = log_in(worker.address(), way);
  const auto frame = text(encode({.kind = FrameKind::kHello}, "")) +
                     text(encode({.kind = FrameKind::kTask, .payload_size = 1000}, std::string(32, 'a')));
  send_all(*transport, frame + "only this");
  check_serves(worker, way);
  transport.reset();
  check_serves(worker, way);
}

TEST_CASE("a worker that sends nonsense is dropped, and its tasks go to another one") {
  const auto way = GENERATE(kWays[0], kWays[1]);
  INFO(way.name);
  const auto listener = listen_tcp("127.0.0.1", 0).value();
  const WorkerAddress bad{.name = "bad", .address = "127.0.0.1", .port = port_of(listener).value(), .unix_path = {}};
  Worker good(way);
  Client client(options_for(way));
  client.set_workers({bad, good.address()});
  Wakeup wakeup;
  REQUIRE(wait_until_ready(listener, Ready::kRead, wakeup, kPatience));
  const auto handshake = Handshake::make(net::Role::kServer, {.run_id = kRun, .key = kKey}, way.encryption).value();
  const auto transport = handshake.run(accept_from(listener), AddressFamily::kTcp, wakeup, kPatience).value();
  send_all(*transport, text(encode({.kind = FrameKind::kReady}, "")));
  wait_until([&] { return client.statistics().workers_up == 2; });
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 10; ++i) client.submit(stream, task(i, 1000));
  send_all(*transport, std::string(64, '?'));
  for (std::size_t i = 0; i < 10; ++i) expect_batch(client, stream, task(i, 1000));
  CHECK(has_line(client.take_remarks(), "bad is lost: not a frame of data delivery"));
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
