#include "training/group/peer_watch.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

namespace taas {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kKnockPatience{500};
constexpr milliseconds kBetweenKnocks{20};
constexpr const char* kBecauseOfAnother = "another";
constexpr const char* kWithAnError = "error";

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
  if (space == std::string::npos) return false;
  return knock(bell.substr(0, space), static_cast<std::uint16_t>(std::stoi(bell.substr(space + 1)))) ==
         Answer::kRefused;
}

}  // namespace

PeerWatch::PeerWatch(c10::intrusive_ptr<c10d::Store> store, const Environment& environment)
    : store_(std::move(store)),
      rank_(environment.rank),
      world_size_(environment.world_size),
      bell_(open_door_bell(environment.master_address, environment.master_port)) {
  if (bell_.listener) store_->set(bell_key(rank_), bell_.address + ' ' + std::to_string(bell_.port));
}

std::string PeerWatch::culprit() {
  const std::lock_guard lock(mutex_);
  if (found_) return *found_;
  say(kBecauseOfAnother);
  const auto end = std::chrono::steady_clock::now() + kKnockPatience;
  std::string found = look();
  while (found.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenKnocks);
    found = look();
  }
  found_ = found;
  return found;
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
