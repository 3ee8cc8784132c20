#include "data/server/connections.hpp"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "base/quiet_thread.hpp"
#include "data/server/server_state.hpp"
#include "data/transport/sockets.hpp"

namespace taas::data {

namespace {

/// At a time; further ones wait in the kernel's queue. Each has a descriptor for its connection and one that wakes its
/// thread.
std::size_t most_strangers() {
  constexpr rlim_t kMost = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return std::clamp<rlim_t>(limit.rlim_cur / 16, 1, kMost);
}

constexpr Duration kCrowdedPatience = std::chrono::milliseconds(500);  // with a stranger while others wait

}  // namespace

Connections::Connections(Server::State& server, std::mutex& mutex, const ServerOptions& options)
    : server_(server), mutex_(mutex), options_(options), most_strangers_(most_strangers()) {}

Result<> Connections::start() {
  return begin_quietly(thread_, [this] { accept_all(); });
}

void Connections::accept_all() {
  std::array<pollfd, 3> fds{pollfd{.fd = options_.tcp_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = options_.unix_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = wakeup_.fd().get(), .events = POLLIN, .revents = 0}};
  while (!stopping_) {
    const auto crowded = make_room();
    fds[0].events = fds[1].events = crowded ? 0 : POLLIN;
    const auto timeout = to_timespec(crowded.value_or(Duration(0)));
    ::ppoll(fds.data(), fds.size(), crowded ? &timeout : nullptr, nullptr);
    wakeup_.clear();
    if (fds[0].revents != 0) accept_one(options_.tcp_listener, AddressFamily::kTcp);
    if (fds[1].revents != 0) accept_one(options_.unix_listener, AddressFamily::kUnix);
    join_ended();
  }
}

void Connections::accept_one(const Fd& listener, AddressFamily family) {
  Fd socket = accept_from(listener);
  if (!socket)
    return static_cast<void>(wait_for_wake(wakeup_, std::chrono::milliseconds(10)));  // no descriptors, perhaps
  if (family == AddressFamily::kTcp) tune_tcp(socket);
  const auto number = next_link_++;
  auto link = std::make_unique<ServerLink>(server_, number, std::move(socket), family);
  std::unique_lock lock(mutex_);
  auto& started = links_[number] = std::move(link);
  strangers_.emplace(number, steady_now());
  const auto begun = started->start();
  if (begun) return;
  strangers_.erase(number);
  link = std::move(links_.extract(number).mapped());
  lock.unlock();
  server_.remark("a client was turned away: " + begun.error().message);  // it comes again after a pause
}

std::optional<Duration> Connections::make_room() {
  const std::lock_guard lock(mutex_);
  if (strangers_.size() < most_strangers_) return {};
  const auto [link, since] = *strangers_.begin();
  const auto left = since + kCrowdedPatience - steady_now();
  if (left > Duration(0)) return left;
  links_.at(link)->turn_away();  // its thread ends by itself
  strangers_.erase(link);
  return {};
}

void Connections::join_ended() {
  std::vector<std::unique_ptr<ServerLink>> over;  // joined after the mutex
  const std::lock_guard lock(mutex_);
  for (const auto number : std::exchange(ended_, {})) over.push_back(std::move(links_.extract(number).mapped()));
}

void Connections::stop() {
  stopping_ = true;
  wakeup_.wake();
  if (thread_.joinable()) thread_.join();
  std::vector<ServerLink*> all;  // they stay in `links_`, where their threads look for each other
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, link] : links_) all.push_back(link.get());
  }
  for (auto* link : all) link->turn_away();
  for (auto* link : all) link->stop();
  links_.clear();
}

void Connections::admit(std::uint64_t link) {
  const std::lock_guard lock(mutex_);
  if (strangers_.size() >= most_strangers_) wakeup_.wake();  // there is room again
  strangers_.erase(link);
}

ServerLink* Connections::find(std::uint64_t link) const {
  const auto found = links_.find(link);
  return found == links_.end() ? nullptr : found->second.get();
}

void Connections::end(std::uint64_t link) {
  strangers_.erase(link);
  ended_.push_back(link);
  wakeup_.wake();
}

}  // namespace taas::data
