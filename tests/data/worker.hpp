#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "data/client/client.hpp"
#include "data/server/server.hpp"
#include "data/transport/sockets.hpp"

// What the tests of delivery share: data workers in threads, and what they make.
namespace taas::data {

inline const std::string kKey(32, 'k');
inline const std::string kRun = "run-1";
inline constexpr std::chrono::seconds kPatience(30);  // only for what goes wrong

/// How a client and its workers talk.
struct Way {
  const char* name;
  Encryption encryption = Encryption::kPlain;
  Compression compression = Compression::kNone;
  AddressFamily family = AddressFamily::kTcp;
};
inline const std::vector<Way> kWays{
    {.name = "plain"},
    {.name = "tls", .encryption = Encryption::kTls},
    {.name = "unix", .family = AddressFamily::kUnix},
    {.name = "plain lz4", .compression = Compression::kLz4},
    {.name = "plain zstd", .compression = Compression::kZstd},
    {.name = "tls lz4", .encryption = Encryption::kTls, .compression = Compression::kLz4},
};

/// The bytes that a task asks for: its payload is "<seed> <size>".
inline std::string make_bytes(const std::string& payload) {
  char* rest = nullptr;
  std::minstd_rand random(static_cast<unsigned>(std::strtoul(payload.c_str(), &rest, 10)) + 1);
  std::string bytes(std::strtoul(rest, nullptr, 10), '\0');
  const bool compressible = random() % 2 == 0;
  // Drawn for the first block alone: under a sanitizer, millions of draws would take most of the test's time.
  const auto block = std::min<std::size_t>(bytes.size(), 4099);
  for (char& byte : std::span(bytes).first(block))
    byte = static_cast<char>(compressible ? random() % 3 : random() >> 8);
  for (std::size_t at = block; at < bytes.size(); at += block) {
    const auto size = std::min(block, bytes.size() - at);
    std::memcpy(&bytes[at], bytes.data(), size);
    std::memcpy(&bytes[at], &at, std::min(size, sizeof at));  // no block is like another one
  }
  return bytes;
}

inline std::string task(std::size_t seed, std::size_t size) {
  return std::to_string(seed) + " " + std::to_string(size);
}

inline std::string text_of(const Batch& batch) {
  return {reinterpret_cast<const char*>(batch.payload.data()), batch.payload.size()};
}

inline Fd duplicate(const Fd& fd) { return Fd(::dup(fd.get())); }

/// A folder of this test for sockets.
class Folder {
 public:
  Folder() : path_("/tmp/taas-data-XXXXXX") { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~Folder() {
    for (const auto& file : files_) ::unlink(file.c_str());
    ::rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) { return files_.emplace_back(path_ + "/" + name); }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

/// A data worker whose address stays when it is stopped and started again.
class Worker {
 public:
  using Make = std::function<void(Server& server, const Job& job)>;

  explicit Worker(const Way& way, std::string key = kKey, Make make = &Worker::answer)
      : way_(way), key_(std::move(key)), make_(std::move(make)) {
    if (way.family == AddressFamily::kTcp) {
      listener_ = listen_tcp("127.0.0.1", 0).value();
      address_ = {.name = "worker", .address = "127.0.0.1", .port = port_of(listener_).value(), .unix_path = {}};
    } else {
      folder_ = std::make_unique<Folder>();
      address_ = {.name = "worker", .address = {}, .port = 0, .unix_path = folder_->file("socket")};
      listener_ = listen_unix(address_.unix_path).value();
    }
    start();
  }
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start() {
    const bool tcp = way_.family == AddressFamily::kTcp;
    server_ = std::make_unique<Server>(ServerOptions{.run_id = kRun,
                                                     .key = key_,
                                                     .encryption = way_.encryption,
                                                     .tcp_listener = tcp ? duplicate(listener_) : Fd(),
                                                     .unix_listener = tcp ? Fd() : duplicate(listener_)});
    stopping_ = false;
    is_dead_ = false;
    thread_ = std::thread([this] { work(); });
  }
  /// As if it had been killed.
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }

  /// For `make`: it takes no more jobs, and is waiting for stop().
  void die() {
    stopping_ = true;
    is_dead_ = true;
  }
  [[nodiscard]] bool is_dead() const { return is_dead_; }

  [[nodiscard]] const WorkerAddress& address() const { return address_; }
  [[nodiscard]] Server& server() { return *server_; }
  [[nodiscard]] int made() const { return made_; }

  /// What was asked for, in three buffers.
  static void answer(Server& server, const Job& job) {
    auto bytes = std::make_shared<std::string>(make_bytes(job.payload));
    const auto whole = std::as_bytes(std::span(*bytes));
    const auto part = whole.size() / 3 / kBufferAlignment * kBufferAlignment;
    server.put(job, {whole.first(part), whole.subspan(part, part), whole.subspan(2 * part)}, bytes);
  }

 private:
  void work() {
    while (!stopping_) {
      const auto job = server_->take(std::chrono::milliseconds(20));
      if (!job) continue;
      make_(*server_, *job);
      ++made_;
    }
  }

  Way way_;
  std::string key_;
  Make make_;
  std::unique_ptr<Folder> folder_;
  Fd listener_;
  WorkerAddress address_;
  std::unique_ptr<Server> server_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> is_dead_ = false;
  std::atomic<int> made_ = 0;
  std::thread thread_;
};

inline ClientOptions options_for(const Way& way, std::size_t budget = std::size_t{64} << 20) {
  return {.run_id = kRun,
          .key = kKey,
          .encryption = way.encryption,
          .compression = way.compression,
          .budget_bytes = budget,
          .schedule = {}};
}

inline Definition definition(const std::string& text = "a dataset") {
  return {.digest = std::string(32, text.size() % 2 == 0 ? 'a' : 'b'), .bytes = std::make_shared<std::string>(text)};
}

/// The next delivery, which has to be a batch of just this task.
inline Batch expect_batch(Client& client, StreamId stream, const std::string& payload) {
  const auto delivery = client.next(stream, kPatience);
  REQUIRE(delivery.has_value());
  if (const auto* bad = std::get_if<Undeliverable>(&*delivery)) FAIL(bad->message);
  REQUIRE(std::holds_alternative<Batch>(*delivery));
  auto batch = std::get<Batch>(*delivery);
  CHECK((text_of(batch) == make_bytes(payload)));
  CHECK(reinterpret_cast<std::uintptr_t>(batch.payload.data()) % kBufferAlignment == 0);
  return batch;
}

template <class What>
What expect(Client& client, StreamId stream) {
  const auto delivery = client.next(stream, kPatience);
  REQUIRE(delivery.has_value());
  REQUIRE(std::holds_alternative<What>(*delivery));
  return std::get<What>(*delivery);
}

/// One of the lines has this part; where none has, a failing test shows them.
inline bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  for (const auto& line : lines) UNSCOPED_INFO(line);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

/// Until it is so; fails when it never is. For the test's own thread: Catch2 knows no other.
inline void wait_until(const std::function<bool()>& is_so) {
  const auto deadline = steady_now() + kPatience;
  while (!is_so()) {
    if (steady_now() > deadline) FAIL("it never was so");
    std::this_thread::yield();
  }
}

}  // namespace taas::data
