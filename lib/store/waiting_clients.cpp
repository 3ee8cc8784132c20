#include "store/waiting_clients.hpp"

#include <utility>

namespace taas::store {

namespace {

/// About what a missing key takes besides its bytes, for each client that waits for it.
constexpr std::size_t kWaitBytes = 128;

}  // namespace

bool WaitingClients::begin(ClientId client, std::vector<std::string> missing) {
  drop(client);
  std::size_t size = 0;
  for (const auto& key : missing) size += kWaitBytes + 2 * key.size();  // here and in waiters_
  if (!budget_->has_room(size)) return false;
  const auto ticket = next_ticket_++;
  std::size_t different = 0;
  for (const auto& key : missing) {
    if (waiters_[key].emplace(ticket, client).second) ++different;
  }
  waiting_.insert_or_assign(client.value, Waiting{ticket, std::move(missing), different, Share(budget_, size)});
  return true;
}

void WaitingClients::drop(ClientId client) {
  const auto found = waiting_.find(client.value);
  if (found == waiting_.end()) return;
  for (const auto& key : found->second.keys) {
    const auto waiters = waiters_.find(key);
    if (waiters == waiters_.end()) continue;
    waiters->second.erase(found->second.ticket);
    if (waiters->second.empty()) waiters_.erase(waiters);
  }
  waiting_.erase(found);
}

std::vector<ClientId> WaitingClients::key_came(const std::string& key) {
  std::vector<ClientId> released;
  const auto waiters = waiters_.extract(key);
  if (waiters.empty()) return released;
  for (const auto& [ticket, client] : waiters.mapped()) {
    if (is_over(client)) released.push_back(client);
  }
  return released;
}

std::optional<ClientId> WaitingClients::key_came_for_one(const std::string& key) {
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return std::nullopt;
  const auto client = found->second.begin()->second;
  found->second.erase(found->second.begin());
  if (found->second.empty()) waiters_.erase(found);
  return is_over(client) ? std::optional(client) : std::nullopt;
}

/// One of the keys that the client waits for has come. Nothing is known of a client whose wait is over.
bool WaitingClients::is_over(ClientId client) {
  const auto found = waiting_.find(client.value);
  if (--found->second.missing > 0) return false;
  waiting_.erase(found);
  return true;
}

}  // namespace taas::store
