#include "training/group/peer_watch.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace taas {
namespace {

using std::chrono::milliseconds;

constexpr int kBacklog = 4096;
constexpr milliseconds kAnswerPatience{200};
constexpr milliseconds kKnockPatience{500};
constexpr milliseconds kBetweenKnocks{20};
constexpr const char* kBecauseOfAnother = "another";
constexpr const char* kWithAnError = "error";

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, const std::string& port, int type) {
  addrinfo hints{};
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  return {found, ::freeaddrinfo};
}

/// At the address by which this machine reaches the target; loopback stays loopback. Nothing where there is no way.
Fd door_bell_towards(const addrinfo& target) {
  const Fd way(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  auto* address = reinterpret_cast<sockaddr*>(&local);
  socklen_t size = sizeof local;
  // Connecting a datagram socket sends nothing.
  if (!way || ::connect(way.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(way.get(), address, &size) != 0) {
    return Fd();
  }
  reinterpret_cast<sockaddr_in&>(local).sin_port = 0;  // any; of IPv6, too, which has it at the same place
  Fd bell(::socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!bell || ::bind(bell.get(), address, size) != 0 || ::listen(bell.get(), kBacklog) != 0) return Fd();
  return bell;
}

/// "127.0.0.1 40123"; empty: it has none.
std::string address_of(const Fd& bell) {
  sockaddr_storage bound{};
  auto* address = reinterpret_cast<sockaddr*>(&bound);
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(bell.get(), address, &size) != 0 ||
      ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return std::string(host.data()) + ' ' + port.data();
}

/// The process is gone, and its machine says so in time.
bool refuses(const std::string& host, const std::string& port) {
  const auto target = resolve(host, port, SOCK_STREAM);
  if (!target) return false;
  const Fd fd(::socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), target->ai_addr, target->ai_addrlen) == 0) return false;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  pollfd waiting{fd.get(), POLLOUT, 0};
  if (::poll(&waiting, 1, static_cast<int>(kAnswerPatience.count())) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == ECONNREFUSED;
}

std::string bell_key(int rank) { return "bell/" + std::to_string(rank); }
std::string left_key(int rank) { return "left/" + std::to_string(rank); }

/// Nothing where the store is gone or has no such key.
std::string read(c10d::Store& store, const std::string& key) {
  try {
    if (!store.check({key})) return {};
    const auto bytes = store.get(key);
    return {bytes.begin(), bytes.end()};
  } catch (const std::exception&) {
    return {};
  }
}

bool is_gone(c10d::Store& store, int rank) {
  const auto bell = read(store, bell_key(rank));
  const auto space = bell.find(' ');
  return space != std::string::npos && refuses(bell.substr(0, space), bell.substr(space + 1));
}

}  // namespace

PeerWatch::PeerWatch(c10::intrusive_ptr<c10d::Store> store, const Environment& environment)
    : store_(std::move(store)), rank_(environment.rank), world_size_(environment.world_size) {
  const auto targets = resolve(environment.master_address, std::to_string(environment.master_port), SOCK_DGRAM);
  for (const auto* target = targets.get(); target && !bell_; target = target->ai_next) {
    bell_ = door_bell_towards(*target);
  }
  if (bell_) store_->set(bell_key(rank_), address_of(bell_));
}

std::string PeerWatch::culprit() {
  const std::lock_guard lock(mutex_);
  if (found_) return *found_;
  say(kBecauseOfAnother);
  const auto end = std::chrono::steady_clock::now() + kKnockPatience;
  found_ = look();
  while (found_->empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenKnocks);
    found_ = look();
  }
  return *found_;
}

void PeerWatch::leave() {
  const std::lock_guard lock(mutex_);
  if (!found_) say(kWithAnError);
}

std::string PeerWatch::look() {
  for (int rank = 0; rank < world_size_; ++rank) {
    if (rank == rank_) continue;
    if (auto state = state_of(rank); !state.empty()) return "rank " + std::to_string(rank) + state;
  }
  return {};
}

/// A rank says why it leaves before it is gone: one that was there when it was asked may have done both since.
std::string PeerWatch::state_of(int rank) {
  auto left = read(*store_, left_key(rank));
  const bool gone = left.empty() && is_gone(*store_, rank);
  if (gone) left = read(*store_, left_key(rank));
  if (left == kWithAnError) return " has left with an error of its own";
  return gone && left.empty() ? " is gone" : "";
}

void PeerWatch::say(const char* why) {
  try {
    store_->set(left_key(rank_), std::string(why));
  } catch (const std::exception&) {  // whoever served the store may be the one that is gone
  }
}

}  // namespace taas
