// A server's connections: from the first knock to the end.
#include "data/server/server_state.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>

#include "base/quiet_thread.hpp"
#include "data/transport/sockets.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kMostStrangers = 64;  // at a time; further ones wait in the kernel's queue
constexpr Duration kCrowdedPatience = std::chrono::milliseconds(500);  // with a stranger while others wait
constexpr std::size_t kMostRemarks = 100;

}  // namespace

Server::State::State(ServerOptions chosen) : options(std::move(chosen)), process(::getpid()) {
  auto made = Handshake::make(net::Role::kServer, {.run_id = options.run_id, .key = options.key}, options.encryption);
  if (!made) {
    remark(made.error().message);
    return;
  }
  handshake = std::move(*made);
  accept_thread = quiet_thread([this] { accept_all(); });
}

void Server::State::accept_all() {
  std::array<pollfd, 3> fds{pollfd{.fd = options.tcp_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = options.unix_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = wakeup.fd().get(), .events = POLLIN, .revents = 0}};
  while (!stopping) {
    const auto crowded = make_room();
    fds[0].events = fds[1].events = crowded ? 0 : POLLIN;
    const auto timeout = to_timespec(crowded.value_or(Duration(0)));
    ::ppoll(fds.data(), fds.size(), crowded ? &timeout : nullptr, nullptr);
    wakeup.clear();
    if (fds[0].revents != 0) accept_one(options.tcp_listener, AddressFamily::kTcp);
    if (fds[1].revents != 0) accept_one(options.unix_listener, AddressFamily::kUnix);
    join_ended();
  }
}

void Server::State::accept_one(const Fd& listener, AddressFamily family) {
  Fd socket = accept_from(listener);
  if (!socket)
    return static_cast<void>(wait_for_wake(wakeup, std::chrono::milliseconds(10)));  // no descriptors, perhaps
  if (family == AddressFamily::kTcp) tune_tcp(socket);
  const std::lock_guard lock(mutex);
  const auto number = next_link++;
  strangers.emplace(number, steady_now());
  auto& link = links[number] = std::make_unique<ServerLink>(*this, number, std::move(socket), family);
  link->start();
}

std::optional<Duration> Server::State::make_room() {
  const std::lock_guard lock(mutex);
  if (strangers.size() < kMostStrangers) return {};
  const auto [link, since] = *strangers.begin();
  const auto left = since + kCrowdedPatience - steady_now();
  if (left > Duration(0)) return left;
  links.at(link)->turn_away();  // its thread ends by itself
  strangers.erase(link);
  return {};
}

void Server::State::join_ended() {
  std::vector<std::unique_ptr<ServerLink>> over;  // joined after the mutex
  const std::lock_guard lock(mutex);
  for (const auto number : std::exchange(ended, {})) over.push_back(std::move(links.extract(number).mapped()));
}

void Server::State::stop() {
  stopping = true;
  wakeup.wake();
  if (accept_thread.joinable()) accept_thread.join();
  std::vector<ServerLink*> all;  // they stay in `links`, where their threads look for each other
  {
    const std::lock_guard lock(mutex);
    for (const auto& [number, link] : links) all.push_back(link.get());
  }
  for (auto* link : all) link->turn_away();
  for (auto* link : all) link->stop();
  links.clear();
}

void Server::State::add_authenticated(std::uint64_t link) {
  const std::lock_guard lock(mutex);
  if (strangers.size() >= kMostStrangers) wakeup.wake();  // there is room again
  strangers.erase(link);
}

void Server::State::end_link(std::uint64_t link) {
  std::vector<OutFrame> unsent_answers;  // let go after the mutex
  const std::lock_guard lock(mutex);
  strangers.erase(link);
  queue.remove_all_of(link);
  if (const auto found = links.find(link); found != links.end()) {
    found->second->jobs.clear();
    found->second->is_awaited = false;
    sent.notify_all();
    unsent_answers.swap(found->second->answers);
  }
  ask_others(link);
  ended.push_back(link);
  wakeup.wake();
}

void Server::State::remark(std::string text) {
  const std::lock_guard lock(mutex);
  if (remarks.size() < kMostRemarks) remarks.push_back(std::move(text));
}

}  // namespace taas::data
