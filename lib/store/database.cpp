#include "store/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <cstdlib>
#include <optional>

namespace taas::store {

namespace {

const std::string kReady(1, '\0');
const std::string kStopWaiting(1, '\0');
const std::string kNotReady(1, '\1');
const std::string kWaitCancelled(1, '\1');

template <class Number>
void put_number(std::string& out, Number number) {
  unsigned char bytes[sizeof(Number)];
  boost::endian::endian_store<Number, sizeof(Number), boost::endian::order::little>(bytes, number);
  out.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

template <class Number>
std::string number_bytes(Number number) {
  std::string out;
  put_number(out, number);
  return out;
}

void put_blob(std::string& out, const std::string& blob) {
  put_number<std::uint64_t>(out, blob.size());
  out += blob;
}

std::string blob_bytes(const std::string& blob) {
  std::string out;
  out.reserve(sizeof(std::uint64_t) + blob.size());
  put_blob(out, blob);
  return out;
}

/// As torch's server reads it: spaces before and anything after the number are ignored.
std::optional<std::int64_t> read_decimal(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return number;
}

}  // namespace

/// One overload a request; returns the client's own reply, empty for none.
struct Database::Handler {
  Database& db;
  ClientId client;
  std::vector<Reply>& replies;

  Result<std::string> operator()(Set& request) {
    db.put(request.key, std::move(request.value), replies);
    return std::string();
  }

  Result<std::string> operator()(CompareSet& request) {
    const auto found = db.values_.find(request.key);
    const bool missing = found == db.values_.end();
    if (missing && !request.expected.empty()) return blob_bytes(request.expected);
    if (!missing && found->second != request.expected) return blob_bytes(found->second);
    auto reply = blob_bytes(request.desired);
    db.put(request.key, std::move(request.desired), replies);
    return reply;
  }

  Result<std::string> operator()(Get& request) {
    const auto found = db.values_.find(request.key);
    return blob_bytes(found == db.values_.end() ? std::string() : found->second);
  }

  Result<std::string> operator()(Add& request) {
    auto sum = db.increase(request.key, request.amount);
    if (!sum) return sum.error();
    db.wake_all(request.key, replies);
    return number_bytes(*sum);
  }

  Result<std::string> operator()(Check& request) {
    const bool all = std::ranges::all_of(request.keys, [&](const auto& key) { return db.has(key); });
    return all ? kReady : kNotReady;
  }

  Result<std::string> operator()(Wait& request) {
    std::erase_if(request.keys, [&](const auto& key) { return db.has(key); });
    if (request.keys.empty()) return kStopWaiting;
    db.wait(client, std::move(request.keys));
    return std::string();
  }

  Result<std::string> operator()(CountKeys&) { return number_bytes<std::int64_t>(std::ssize(db.values_)); }

  Result<std::string> operator()(Delete& request) {
    return number_bytes<std::int64_t>(static_cast<std::int64_t>(db.values_.erase(request.key)));
  }

  Result<std::string> operator()(Append& request) {
    db.values_[request.key] += request.value;
    db.wake_all(request.key, replies);
    return std::string();
  }

  Result<std::string> operator()(MultiGet& request) {
    std::string out;
    for (const auto& key : request.keys) {
      const auto found = db.values_.find(key);
      put_blob(out, found == db.values_.end() ? std::string() : found->second);
    }
    return out;
  }

  Result<std::string> operator()(MultiSet& request) {
    for (auto& [key, value] : request.entries) db.put(key, std::move(value), replies);
    return std::string();
  }

  Result<std::string> operator()(CancelWait&) {
    db.drop(client);
    return kWaitCancelled;
  }

  Result<std::string> operator()(Ping& request) { return number_bytes(request.nonce); }

  Result<std::string> operator()(QueuePush& request) {
    db.queues_[request.key].push_back(std::move(request.value));
    db.wake_one(request.key, replies);
    return std::string();
  }

  Result<std::string> operator()(QueuePop& request) {
    const auto found = db.queues_.find(request.key);
    if (found == db.queues_.end()) return number_bytes<std::int64_t>(0);
    auto reply = number_bytes<std::int64_t>(std::ssize(found->second));
    put_blob(reply, found->second.front());
    found->second.pop_front();
    if (found->second.empty()) db.queues_.erase(found);
    return reply;
  }

  Result<std::string> operator()(QueueLength& request) {
    const auto found = db.queues_.find(request.key);
    return number_bytes<std::int64_t>(found == db.queues_.end() ? 0 : std::ssize(found->second));
  }

  Result<std::string> operator()(ListKeys&) {
    std::string out;
    put_number<std::int64_t>(out, std::ssize(db.values_));
    for (const auto& [key, value] : db.values_) put_blob(out, key);
    return out;
  }

  Result<std::string> operator()(Barrier& request) {
    auto arrived = db.increase(request.key, 1);
    if (!arrived) return arrived.error();
    if (*arrived < request.size) {
      db.wait(client, {std::move(request.key)});
      return std::string();
    }
    db.wake_all(request.key, replies);
    return kStopWaiting;
  }
};

Result<std::vector<Reply>> Database::apply(ClientId client, Request&& request) {
  std::vector<Reply> replies;
  auto own = std::visit(Handler{*this, client, replies}, request);
  if (!own) return std::move(own).error();
  if (!own->empty()) replies.push_back({client, std::move(*own)});
  return replies;
}

void Database::drop(ClientId client) {
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

bool Database::has(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

void Database::put(const std::string& key, std::string value, std::vector<Reply>& replies) {
  values_[key] = std::move(value);
  wake_all(key, replies);
}

/// Wakes nobody: a barrier counts here while its clients wait on the same key.
Result<std::int64_t> Database::increase(const std::string& key, std::int64_t amount) {
  std::int64_t before = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    const auto number = read_decimal(found->second);
    if (!number) return protocol_error(fmt::format("cannot add to key '{}': its value is not a number", key));
    before = *number;
  }
  // Unsigned, because a sum past the end wraps.
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(amount));
  values_[key] = std::to_string(sum);
  return sum;
}

/// `missing` is not empty. A wait that the client began before is forgotten.
void Database::wait(ClientId client, std::vector<std::string> missing) {
  drop(client);
  const auto ticket = next_ticket_++;
  std::size_t different = 0;
  for (const auto& key : missing) {
    if (waiters_[key].emplace(ticket, client).second) ++different;
  }
  waiting_[client.value] = {ticket, std::move(missing), different};
}

void Database::wake_all(const std::string& key, std::vector<Reply>& replies) {
  const auto waiters = waiters_.extract(key);
  if (waiters.empty()) return;
  for (const auto& [ticket, client] : waiters.mapped()) key_came(client, replies);
}

/// One value was pushed, so one client may have it: the one that has waited longest.
void Database::wake_one(const std::string& key, std::vector<Reply>& replies) {
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return;
  const auto client = found->second.begin()->second;
  found->second.erase(found->second.begin());
  if (found->second.empty()) waiters_.erase(found);
  key_came(client, replies);
}

/// A key counts from when it came, even if it is deleted again before the others come.
void Database::key_came(ClientId client, std::vector<Reply>& replies) {
  const auto found = waiting_.find(client.value);
  if (--found->second.missing > 0) return;
  waiting_.erase(found);
  replies.push_back({client, kStopWaiting});
}

}  // namespace taas::store
