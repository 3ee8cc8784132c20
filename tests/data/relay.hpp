#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "data/transport/sockets.hpp"
#include "worker.hpp"

namespace taas::data {

/// A stretch of network between a client and a worker, where links can be cut, frozen or disturbed.
class Relay {
 public:
  explicit Relay(WorkerAddress target) : target_(std::move(target)), listener_(listen_tcp("127.0.0.1", 0).value()) {
    address_ = target_;
    address_.port = port_of(listener_).value();
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stopping_ = true;
    wakeup_.wake();
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] const WorkerAddress& address() const { return address_; }
  /// Closes all that there are now.
  void cut() {
    cut_ = true;
    wakeup_.wake();
  }
  /// From now on nothing arrives any more, and nobody is told.
  void freeze() {
    frozen_ = true;
    wakeup_.wake();
  }
  void thaw() {
    frozen_ = false;
    wakeup_.wake();
  }
  /// The next bytes from the worker are changed.
  void disturb() { disturb_ = true; }
  [[nodiscard]] std::size_t passed() const { return passed_; }

 private:
  struct Pair {
    std::array<Fd, 2> ends;
  };

  void run() {
    std::vector<Pair> pairs;
    while (!stopping_) {
      if (cut_.exchange(false)) pairs.clear();
      std::vector<pollfd> fds{{.fd = wakeup_.fd().get(), .events = POLLIN, .revents = 0},
                              {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const auto& pair : pairs) {
        for (const auto& end : pair.ends)
          fds.push_back({.fd = frozen_ ? -1 : end.get(), .events = POLLIN, .revents = 0});
      }
      ::poll(fds.data(), fds.size(), -1);
      wakeup_.clear();
      for (std::size_t i = 2; i < fds.size(); ++i) {
        auto& pair = pairs[(i - 2) / 2];
        if (fds[i].revents != 0 && pair.ends[0] && !pass(pair, i % 2)) pair = {};
      }
      std::erase_if(pairs, [](const Pair& pair) { return !pair.ends[0]; });
      if (fds[1].revents != 0) add(pairs);
    }
  }

  void add(std::vector<Pair>& pairs) {
    Fd client = accept_from(listener_);
    auto worker = connect_tcp(target_.address, target_.port, wakeup_, kPatience);
    if (client && worker) pairs.push_back({{std::move(client), std::move(*worker)}});
  }

  /// False: one of the ends is gone.
  bool pass(Pair& pair, std::size_t from) {
    std::array<char, 65536> bytes;
    const auto size = ::recv(pair.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    if (from == 1 && disturb_.exchange(false)) bytes[static_cast<std::size_t>(size) / 2] ^= 1;
    passed_ += static_cast<std::size_t>(size);
    for (ssize_t sent = 0; sent < size && !stopping_;) {
      pollfd ready{.fd = pair.ends[1 - from].get(), .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, 100);
      const auto now = ::send(pair.ends[1 - from].get(), bytes.data() + sent, static_cast<std::size_t>(size - sent),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
      if (now < 0 && errno != EAGAIN) return false;
      sent += std::max<ssize_t>(now, 0);
    }
    return true;
  }

  WorkerAddress target_;
  WorkerAddress address_;
  Fd listener_;
  Wakeup wakeup_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> disturb_ = false;
  std::atomic<std::size_t> passed_ = 0;
  std::thread thread_;
};

}  // namespace taas::data
