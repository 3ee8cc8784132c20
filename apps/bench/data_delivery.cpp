// data_delivery [BYTES [BATCHES [ROUNDS]]]: how fast one worker process delivers batches to one client process on this
// machine, by each way, beside a raw TCP stream into recycled buffers in the same rounds. Payloads are random; each
// batch's digest (XXH3) is compared with what the worker has, in the same time for all. Prints one JSON object.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "data/client/client.hpp"
#include "data/server/server.hpp"
#include "data/transport/sockets.hpp"
#include "data/wire/digest.hpp"

namespace {

using namespace taas;
using namespace taas::data;

constexpr std::size_t kDifferent = 4;  // batches that the worker has
const std::string kKey(32, 'k');

struct Sizes {
  std::size_t bytes = 38'535'168;
  std::size_t batches = 100;
  int rounds = 9;
};

struct Figures {
  std::vector<double> gigabytes;  ///< a second
  std::vector<double> seconds;    ///< of the receiver's processor, for a gigabyte
};

using Batches = std::vector<std::vector<std::byte>>;

Batches make_batches(std::size_t bytes) {
  std::minstd_rand random(1);
  Batches batches(kDifferent, std::vector<std::byte>(bytes));
  for (auto& batch : batches) {
    for (auto& byte : batch) byte = static_cast<std::byte>(random() >> 8);
  }
  return batches;
}

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "data_delivery: %s\n", what.c_str());
  std::exit(1);
}

/// Runs `serve` in a child, `receive` here, and measures the latter.
template <class Serve, class Receive>
void measure(Figures& figures, const Sizes& sizes, Serve serve, Receive receive) {
  const pid_t child = ::fork();
  if (child == 0) {
    serve();
    ::_exit(0);
  }
  const auto [elapsed, used] = receive();
  int status = 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  const auto gigabytes = static_cast<double>(sizes.bytes * sizes.batches) / 1e9;
  figures.gigabytes.push_back(gigabytes / elapsed);
  figures.seconds.push_back(used / gigabytes);
}

/// The limit: send() and recv() of whole batches, without frames and checks.
void raw_tcp(Figures& figures, const Sizes& sizes, const Batches& batches) {
  const auto listener = listen_tcp("127.0.0.1", 0).value();
  const auto port = port_of(listener).value();
  const auto serve = [&] {
    Wakeup wakeup;
    wait_until_ready(listener, Ready::kRead, wakeup, std::chrono::seconds(10));
    const Fd socket(::accept(listener.get(), nullptr, nullptr));
    tune_tcp(socket);
    for (std::size_t i = 0; i <= sizes.batches; ++i) {
      const auto& batch = batches[i % kDifferent];
      for (std::size_t sent = 0; sent < batch.size();) {
        const auto now = ::send(socket.get(), batch.data() + sent, batch.size() - sent, MSG_NOSIGNAL);
        if (now <= 0) return;
        sent += static_cast<std::size_t>(now);
      }
    }
    char end = 0;
    static_cast<void>(::recv(socket.get(), &end, 1, 0));
  };
  const auto receive = [&] {
    Wakeup wakeup;
    const auto socket = connect_tcp("127.0.0.1", port, wakeup, std::chrono::seconds(10)).value();
    std::vector<Mapping> slots;
    for (int i = 0; i < 8; ++i) slots.push_back(Mapping::of_own_memory(sizes.bytes).value());
    const auto receive_one = [&](std::size_t number) {
      auto into = slots[number % slots.size()].bytes();
      while (!into.empty()) {
        const auto got = ::recv(socket.get(), into.data(), into.size(), 0);
        if (got < 0 && errno == EAGAIN) wait_until_ready(socket, Ready::kRead, wakeup, std::chrono::seconds(10));
        if (got == 0) fail("the raw stream ended");
        into = into.subspan(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      }
    };
    receive_one(0);
    const auto began = steady_now();
    const auto used = processor_seconds();
    for (std::size_t i = 1; i <= sizes.batches; ++i) receive_one(i);
    return std::pair(seconds(steady_now() - began), processor_seconds() - used);
  };
  measure(figures, sizes, serve, receive);
}

void serve_batches(ServerOptions options, const Batches& batches) {
  Server server(std::move(options));
  for (;;) {
    const auto job = server.take(std::chrono::seconds(1));
    if (!job) continue;
    server.put(*job, {batches[job->number % kDifferent]}, nullptr);
  }
}

Batch next(Client& client, StreamId stream) {
  auto delivery = client.next(stream, std::chrono::seconds(30));
  auto* batch = delivery ? std::get_if<Batch>(&*delivery) : nullptr;
  if (!batch) fail("no batch came");
  return *batch;
}

void delivered(Figures& figures, const Sizes& sizes, const Batches& batches, Encryption encryption, bool is_here) {
  const auto path = fmt::format("/tmp/data_delivery.{}", ::getpid());
  auto listener = is_here ? listen_unix(path).value() : listen_tcp("127.0.0.1", 0).value();
  const WorkerAddress address{.name = "worker",
                              .address = is_here ? "" : "127.0.0.1",
                              .port = is_here ? std::uint16_t{0} : port_of(listener).value(),
                              .unix_path = is_here ? path : ""};
  std::vector<std::uint64_t> digests;
  for (const auto& batch : batches) digests.push_back(digest_of(batch));
  const auto serve = [&] {
    ServerOptions served;
    served.run_id = "bench";
    served.key = kKey;
    served.encryption = encryption;
    (is_here ? served.unix_listener : served.tcp_listener) = std::move(listener);
    serve_batches(std::move(served), batches);
  };
  const auto receive = [&] {
    Client client({.run_id = "bench", .key = kKey, .encryption = encryption, .schedule = {}});
    client.set_workers({address});
    const auto stream = client.open({.digest = std::string(32, '0'), .bytes = std::make_shared<std::string>("bench")});
    for (std::size_t i = 0; i <= sizes.batches; ++i) client.submit(stream, "x");
    next(client, stream);
    const auto began = steady_now();
    const auto used = processor_seconds();
    bool same = true;
    for (std::size_t i = 1; i <= sizes.batches; ++i) same &= next(client, stream).digest == digests[i % kDifferent];
    const std::pair result(seconds(steady_now() - began), processor_seconds() - used);
    if (!same) fail("a batch came with another digest");
    return result;
  };
  measure(figures, sizes, serve, receive);
  if (is_here) ::unlink(path.c_str());
}

std::string summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return fmt::format(R"({{"median": {:.3f}, "min": {:.3f}, "max": {:.3f}}})", values[values.size() / 2], values.front(),
                     values.back());
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.bytes = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) sizes.batches = std::strtoul(argv[2], nullptr, 10);
  if (argc > 3) sizes.rounds = std::atoi(argv[3]);
  if (sizes.bytes == 0 || sizes.batches == 0 || sizes.rounds <= 0)
    fail("BYTES, BATCHES and ROUNDS are positive numbers");
  const auto batches = make_batches(sizes.bytes);
  std::array<Figures, 4> figures;
  for (int round = 0; round < sizes.rounds; ++round) {
    raw_tcp(figures[0], sizes, batches);
    delivered(figures[1], sizes, batches, Encryption::kPlain, false);
    delivered(figures[2], sizes, batches, Encryption::kTls, false);
    delivered(figures[3], sizes, batches, Encryption::kPlain, true);
  }
  fmt::print("{{\"bytes\": {}, \"batches\": {}, \"rounds\": {}", sizes.bytes, sizes.batches, sizes.rounds);
  constexpr std::array kNames{"raw TCP", "plain", "TLS", "same machine"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    fmt::print(",\n \"{}\": {{\"GB/s\": {}, \"receiver CPU s/GB\": {}}}", kNames[i], summary(figures[i].gigabytes),
               summary(figures[i].seconds));
  }
  fmt::print("}}\n");
}
