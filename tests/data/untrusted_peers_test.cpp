// What peers do that do not know the secret, or do not keep to the protocol.
#include <array>
#include <functional>

#include "data/transport/handshake.hpp"
#include "data/wire/frame.hpp"
#include "worker.hpp"

namespace untrusted_peers_test {

using namespace taas;
using namespace taas::data;

namespace {

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

}  // namespace untrusted_peers_test
