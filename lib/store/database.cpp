#include "store/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "store/parser.hpp"
#include "store/pieces.hpp"

namespace taas::store {

namespace {

/// More than a key takes besides its bytes and its value's: a table of many millions takes seconds to grow and to
/// clear.
constexpr std::size_t kEntryBytes = 1024;

const std::string kReady(1, '\0');
const std::string kStopWaiting(1, '\0');
const std::string kNotReady(1, '\1');
const std::string kWaitCancelled(1, '\1');

Error full_error(const Budget& budget) {
  return unavailable_error(fmt::format("no room for the request: the store holds at most {} bytes", budget.most()));
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

  Result<Pieces> operator()(Set& request) { return silent(db.put(request.key, std::move(request.value), replies)); }

  Result<Pieces> operator()(CompareSet& request) {
    const auto found = db.values_.find(request.key);
    const bool missing = found == db.values_.end();
    if (missing && !request.expected.empty()) return blob_piece(request.expected);
    if (!missing && found->second->bytes != request.expected) return value_pieces(found->second);
    if (auto done = db.put(request.key, std::move(request.desired), replies); !done) return done.error();
    return value_pieces(db.values_.at(request.key));
  }

  Result<Pieces> operator()(Get& request) { return value_pieces(find(request.key)); }

  Result<Pieces> operator()(Add& request) {
    auto sum = db.increase(request.key, request.amount);
    if (!sum) return sum.error();
    db.wake_all(request.key, replies);
    return one_piece(number_bytes(*sum));
  }

  Result<Pieces> operator()(Check& request) {
    const bool all = std::ranges::all_of(request.keys, [&](const auto& key) { return db.has(key); });
    return one_piece(all ? kReady : kNotReady);
  }

  Result<Pieces> operator()(Wait& request) {
    std::erase_if(request.keys, [&](const auto& key) { return db.has(key); });
    if (request.keys.empty()) return one_piece(kStopWaiting);
    return silent(db.wait(client, std::move(request.keys)));
  }

  Result<Pieces> operator()(CountKeys&) { return one_piece(number_bytes<std::int64_t>(std::ssize(db.values_))); }

  Result<Pieces> operator()(Delete& request) {
    return one_piece(number_bytes<std::int64_t>(static_cast<std::int64_t>(db.values_.erase(request.key))));
  }

  Result<Pieces> operator()(Append& request) {
    if (auto done = db.append(request.key, request.value); !done) return done.error();
    db.wake_all(request.key, replies);
    return Pieces();
  }

  Result<Pieces> operator()(MultiGet& request) {
    if (request.keys.empty()) return Pieces();
    Pieces pieces(1);
    for (const auto& key : request.keys) put_value(pieces, find(key));
    return pieces;
  }

  Result<Pieces> operator()(MultiSet& request) {
    for (auto& [key, value] : request.entries) {
      if (auto done = db.put(key, std::move(value), replies); !done) return done.error();
    }
    return Pieces();
  }

  Result<Pieces> operator()(CancelWait&) {
    db.drop(client);
    return one_piece(kWaitCancelled);
  }

  Result<Pieces> operator()(Ping& request) { return one_piece(number_bytes(request.nonce)); }

  Result<Pieces> operator()(QueuePush& request) {
    auto value = db.make_value(request.key, std::move(request.value));
    if (!value) return value.error();
    db.queues_[request.key].push_back(std::move(*value));
    db.wake_one(request.key, replies);
    return Pieces();
  }

  Result<Pieces> operator()(QueuePop& request) {
    const auto found = db.queues_.find(request.key);
    if (found == db.queues_.end()) return one_piece(number_bytes<std::int64_t>(0));
    auto pieces = one_piece(number_bytes<std::int64_t>(std::ssize(found->second)));
    put_value(pieces, found->second.front());
    found->second.pop_front();
    if (found->second.empty()) db.queues_.erase(found);
    return pieces;
  }

  Result<Pieces> operator()(QueueLength& request) {
    const auto found = db.queues_.find(request.key);
    return one_piece(number_bytes<std::int64_t>(found == db.queues_.end() ? 0 : std::ssize(found->second)));
  }

  Result<Pieces> operator()(ListKeys&) {
    if (db.values_.size() > kMaxKeys) {
      return unavailable_error(fmt::format("{} keys are not listed, at most {}", db.values_.size(), kMaxKeys));
    }
    std::string out;
    put_number<std::int64_t>(out, std::ssize(db.values_));
    for (const auto& [key, value] : db.values_) put_blob(out, key);
    return one_piece(std::move(out));
  }

  Result<Pieces> operator()(Barrier& request) {
    auto arrived = db.increase(request.key, 1);
    if (!arrived) return arrived.error();
    if (*arrived < request.size) return silent(db.wait(client, {std::move(request.key)}));
    db.wake_all(request.key, replies);
    return one_piece(kStopWaiting);
  }

 private:
  static Result<Pieces> silent(const Result<>& done) {
    if (!done) return done.error();
    return Pieces();
  }

  [[nodiscard]] std::shared_ptr<const Value> find(const std::string& key) const {
    const auto found = db.values_.find(key);
    return found == db.values_.end() ? nullptr : found->second;
  }
};

Result<std::vector<Reply>> Database::apply(ClientId client, Request&& request) {
  std::vector<Reply> replies;
  auto own = std::visit(Handler{*this, client, replies}, request);
  if (!own) return std::move(own).error();
  if (!own->empty()) replies.push_back({client, std::move(*own)});
  return replies;
}

bool Database::has(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

Result<Database::Stored> Database::make_value(const std::string& key, std::string bytes) {
  const auto size = kEntryBytes + key.size() + bytes.size();
  if (!budget_->has_room(size)) return full_error(*budget_);
  return std::make_shared<Value>(Value{std::move(bytes), Share(budget_, size)});
}

Result<> Database::put(const std::string& key, std::string bytes, std::vector<Reply>& replies) {
  auto value = make_value(key, std::move(bytes));
  if (!value) return value.error();
  values_[key] = std::move(*value);
  wake_all(key, replies);
  return {};
}

/// In place, unless a reply on its way shares the value. Wakes nobody.
Result<> Database::append(const std::string& key, const std::string& more) {
  auto& stored = values_[key];
  if (stored && stored.use_count() == 1 && budget_->has_room(more.size())) {
    stored->bytes += more;
    stored->share.set(stored->share.bytes() + more.size());
    return {};
  }
  auto value = make_value(key, stored ? stored->bytes + more : more);
  if (value) stored = std::move(*value);
  if (!stored) values_.erase(key);
  return value ? Result<>() : value.error();
}

/// Wakes nobody: a barrier counts here while its clients wait on the same key.
Result<std::int64_t> Database::increase(const std::string& key, std::int64_t amount) {
  std::int64_t before = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    const auto number = read_decimal(found->second->bytes);
    if (!number) return protocol_error(fmt::format("cannot add to key '{}': its value is not a number", key));
    before = *number;
  }
  // Unsigned, because a sum past the end wraps.
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(amount));
  auto value = make_value(key, std::to_string(sum));
  if (!value) return value.error();
  values_[key] = std::move(*value);
  return sum;
}

/// `missing` is not empty.
Result<> Database::wait(ClientId client, std::vector<std::string> missing) {
  return waiting_.begin(client, std::move(missing)) ? Result<>() : full_error(*budget_);
}

void Database::wake_all(const std::string& key, std::vector<Reply>& replies) {
  for (const auto client : waiting_.key_came(key)) replies.push_back({client, one_piece(kStopWaiting)});
}

/// One value was pushed, so one client may have it.
void Database::wake_one(const std::string& key, std::vector<Reply>& replies) {
  if (const auto client = waiting_.key_came_for_one(key)) replies.push_back({*client, one_piece(kStopWaiting)});
}

}  // namespace taas::store
